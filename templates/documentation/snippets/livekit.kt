// Call.kt, with the packages livekit-android and livekit-android-compose-components
// Source: github.com/livekit/client-sdk-android, io/livekit/android/token/TokenSource.kt
import androidx.compose.material3.Button
import androidx.compose.material3.Text
import androidx.compose.runtime.*
import io.livekit.android.annotations.Beta
import io.livekit.android.compose.state.rememberSession
import io.livekit.android.token.TokenSource
import io.livekit.android.token.cached
import kotlinx.coroutines.launch

@OptIn(Beta::class)
@Composable
fun Call(siteSession: String) { // of your own sign-in
    val source = remember(siteSession) {
        TokenSource.fromEndpoint(
            "https://www.example.com/token",
            headers = mapOf("Authorization" to "Bearer $siteSession"),
        ).cached()
    }
    val session = rememberSession(source)
    val scope = rememberCoroutineScope()
    if (session.isConnected) {
        Button(onClick = { session.end() }) { Text("End call") }
    } else {
        Button(onClick = { scope.launch { session.start() } }) { Text("Talk") }
    }
}

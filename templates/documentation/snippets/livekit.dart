// call.dart, with the package livekit_client
// Source: github.com/livekit/client-sdk-flutter, lib/src/token_source/endpoint.dart
import 'package:livekit_client/livekit_client.dart';

// siteSession is of your own sign-in. Call start() to talk, and end() to end the call.
Session newSession(String siteSession) => Session.fromConfigurableTokenSource(
      EndpointTokenSource(
        url: Uri.parse('https://www.example.com/token'),
        headers: {'Authorization': 'Bearer $siteSession'},
      ).cached(),
    );

// App.jsx, with the packages livekit-client and @livekit/components-react
// Source: github.com/livekit/components-js, packages/react/src/hooks/useSession.ts
import { RoomAudioRenderer, SessionProvider, useSession } from '@livekit/components-react';
import { TokenSource } from 'livekit-client';

// Outside the component, so that it is the same in each rendering.
const tokenSource = TokenSource.endpoint('/token');

export function App() {
  const session = useSession(tokenSource); // fetches a token now, for a fast start
  return (
    <SessionProvider session={session}>
      <RoomAudioRenderer room={session.room} />
      <button onClick={() => (session.isConnected ? session.end() : session.start())}>
        {session.isConnected ? 'End call' : 'Talk'}
      </button>
    </SessionProvider>
  );
}

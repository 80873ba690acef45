// CallView.swift, with the package client-sdk-swift
// Source: github.com/livekit/client-sdk-swift, Sources/LiveKit/Token/EndpointTokenSource.swift
import LiveKit
import SwiftUI

struct SiteTokenSource: EndpointTokenSource {
    let url = URL(string: "https://www.example.com/token")!
    let siteSession: String // of your own sign-in

    var headers: [String: String] { ["Authorization": "Bearer \(siteSession)"] }
}

struct CallView: View {
    @StateObject private var session: Session

    init(siteSession: String) {
        let source = SiteTokenSource(siteSession: siteSession).cached()
        _session = StateObject(wrappedValue: Session(tokenSource: source))
    }

    var body: some View {
        Button(session.isConnected ? "End call" : "Talk") {
            Task {
                if session.isConnected { await session.end() } else { await session.start() }
            }
        }
    }
}

//! Clients and servers that do not speak the protocol.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{bind_listener, handshake_with, loopback_addr, tls_client, with_token};
use crate::control::{ControlError, ControlLimits, connect};

/// Returns the listener's error for a peer that sends these bytes; checks that it still accepts the next client
async fn handshake_error(bytes: &[u8]) -> ControlError {
    let listener = bind_listener(&with_token(), &ControlLimits::default()).await;
    let mut peer = TcpStream::connect(listener.local_addr()).await.unwrap();
    let half_open = listener.accept().await.unwrap();
    let send = async {
        // The listener closes the connection before all is sent.
        let _ = peer.write_all(bytes).await;
        let _ = peer.shutdown().await;
    };
    let (result, ()) = tokio::join!(half_open.handshake(), send);
    let (at_server, at_client) = handshake_with(&listener, &with_token()).await;
    assert!(at_server.is_ok() && at_client.is_ok());
    result.unwrap_err()
}

#[tokio::test]
async fn a_megabyte_of_garbage_is_an_unknown_protocol() {
    let error = handshake_error(&vec![0xa5; 1 << 20]).await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn garbage_that_begins_like_tls_is_an_unknown_protocol() {
    let mut bytes = vec![0x16, 3, 1, 0x40, 0];
    bytes.resize(1 << 20, 0xff);
    let error = handshake_error(&bytes).await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn a_browser_speaks_an_unknown_protocol() {
    let error = handshake_error(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn a_peer_that_sends_nothing_has_closed_early() {
    let error = handshake_error(b"").await;
    assert!(matches!(error, ControlError::ClosedEarly { .. }), "{error:?}");
}

#[tokio::test]
async fn another_server_speaks_an_unknown_protocol() {
    let ssh = TcpListener::bind(loopback_addr()).await.unwrap();
    let (addr, client, limits) = (ssh.local_addr().unwrap(), with_token(), ControlLimits::default());
    let send = async {
        let (mut stream, _) = ssh.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await.unwrap();
        stream
    };
    let (result, _stream) = tokio::join!(connect(addr, &client, &limits), send);
    assert!(matches!(result, Err(ControlError::UnknownProtocol { .. })), "{result:?}");
}

/// Returns the listener's error for a peer that completes TLS and sends this in place of its claim
async fn claim_error(claim: &Value) -> ControlError {
    let listener = bind_listener(&with_token(), &ControlLimits::default()).await;
    let client = with_token();
    let serve = async { listener.accept().await.unwrap().handshake().await };
    let send = async {
        let (mut frames, _) = tls_client(listener.local_addr(), &client).await;
        frames.send(claim).await.unwrap();
        frames.recv::<Value>().await
    };
    tokio::join!(serve, send).0.unwrap_err()
}

#[tokio::test]
async fn a_claim_of_the_wrong_type_is_an_unknown_protocol() {
    for claim in [json!(7), json!({ "token": 7 }), json!([[]]), json!("trusted")] {
        let error = claim_error(&claim).await;
        assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{claim}: {error:?}");
    }
}

#[tokio::test]
async fn an_invalid_proof_is_a_wrong_token() {
    for proof in ["", "?", &"A".repeat(43), &"A".repeat(60_000)] {
        let error = claim_error(&json!({ "token": proof })).await;
        assert!(matches!(error, ControlError::WrongToken { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn all_unauthenticated_peers_get_the_same_refusal() {
    for claim in [json!({ "token": null }), json!({ "token": "?" }), json!({ "token": "A".repeat(43) })] {
        let listener = bind_listener(&with_token(), &ControlLimits::default()).await;
        let client = with_token();
        let send = async {
            let (mut frames, _) = tls_client(listener.local_addr(), &client).await;
            frames.send(&claim).await.unwrap();
            (frames.recv::<Value>().await.unwrap(), frames.recv::<Value>().await.unwrap())
        };
        let serve = async { listener.accept().await.unwrap().handshake().await };
        let (_, replies) = tokio::join!(serve, send);
        assert_eq!(replies, (Some(json!("untrusted")), None));
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_at_its_deadline_and_blocks_nobody() {
    let limits = ControlLimits { handshake_timeout: Duration::from_secs(2), ..ControlLimits::default() };
    let listener = bind_listener(&with_token(), &limits).await;
    let mut silent = TcpStream::connect(listener.local_addr()).await.unwrap();
    let handshake = tokio::spawn(listener.accept().await.unwrap().handshake());
    let (at_server, at_client) = handshake_with(&listener, &with_token()).await;
    assert!(at_server.is_ok() && at_client.is_ok());
    let handshake = handshake.await.unwrap();
    assert!(matches!(handshake, Err(ControlError::HandshakeTimeout { .. })), "{handshake:?}");
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap(), 0);
}

#[tokio::test]
async fn the_handshake_with_a_silent_server_times_out() {
    let mute = TcpListener::bind(loopback_addr()).await.unwrap();
    let limits = ControlLimits { handshake_timeout: Duration::from_millis(50), ..ControlLimits::default() };
    let result = connect(mute.local_addr().unwrap(), &with_token(), &limits).await;
    assert!(matches!(result, Err(ControlError::HandshakeTimeout { .. })), "{result:?}");
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_oldest_beyond_the_limit() {
    let listener = bind_listener(&with_token(), &ControlLimits { max_handshakes: 1, ..ControlLimits::default() }).await;
    let (addr, client) = (listener.local_addr(), with_token());
    let mut silent = TcpStream::connect(addr).await.unwrap();
    let oldest = tokio::spawn(listener.accept().await.unwrap().handshake());
    let (at_server, at_client) = handshake_with(&listener, &client).await;
    assert!(at_server.is_ok() && at_client.is_ok());
    let evicted = oldest.await.unwrap();
    assert!(matches!(evicted, Err(ControlError::Evicted { .. })), "{evicted:?}");
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap(), 0);
    assert_eq!(listener.rejected_count(), 1);
}

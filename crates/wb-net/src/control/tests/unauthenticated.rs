//! Whatever else connects, or is connected to.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{anywhere, listening, meeting_at, tls_client, with_token};
use crate::control::{ControlError, ControlLimits, connect};

/// What the listener makes of a stranger that writes this, and it must take the next client all the same
async fn judged(said: &[u8]) -> ControlError {
    let listener = listening(&with_token(), &ControlLimits::default()).await;
    let mut stranger = TcpStream::connect(listener.local_addr()).await.unwrap();
    let half_open = listener.accept().await.unwrap();
    let speak = async {
        // The listener hangs up in the middle of it.
        let _ = stranger.write_all(said).await;
        let _ = stranger.shutdown().await;
    };
    let (met, ()) = tokio::join!(half_open.handshake(), speak);
    let (at_server, at_client) = meeting_at(&listener, &with_token()).await;
    assert!(at_server.is_ok() && at_client.is_ok());
    met.unwrap_err()
}

#[tokio::test]
async fn a_megabyte_of_garbage_is_not_our_protocol() {
    let error = judged(&vec![0xa5; 1 << 20]).await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn garbage_that_begins_like_tls_is_not_our_protocol() {
    let mut said = vec![0x16, 3, 1, 0x40, 0];
    said.resize(1 << 20, 0xff);
    let error = judged(&said).await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn a_browser_is_not_our_protocol() {
    let error = judged(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{error:?}");
}

#[tokio::test]
async fn a_stranger_that_says_nothing_and_leaves_has_closed_early() {
    let error = judged(b"").await;
    assert!(matches!(error, ControlError::ClosedEarly { .. }), "{error:?}");
}

#[tokio::test]
async fn another_server_is_not_our_protocol() {
    let ssh = TcpListener::bind(anywhere()).await.unwrap();
    let (addr, client, limits) = (ssh.local_addr().unwrap(), with_token(), ControlLimits::default());
    let speak = async {
        let (mut stream, _) = ssh.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await.unwrap();
        stream
    };
    let (met, _stream) = tokio::join!(connect(addr, &client, &limits), speak);
    assert!(matches!(met, Err(ControlError::UnknownProtocol { .. })), "{met:?}");
}

/// What the listener makes of a stranger that speaks TLS and says this in place of its claim
async fn judged_inside_tls(claim: &Value) -> ControlError {
    let listener = listening(&with_token(), &ControlLimits::default()).await;
    let client = with_token();
    let serve = async { listener.accept().await.unwrap().handshake().await };
    let speak = async {
        let (mut frames, _) = tls_client(listener.local_addr(), &client).await;
        frames.send(claim).await.unwrap();
        frames.recv::<Value>().await
    };
    tokio::join!(serve, speak).0.unwrap_err()
}

#[tokio::test]
async fn a_claim_of_the_wrong_form_is_not_our_protocol() {
    for claim in [json!(7), json!({ "token": 7 }), json!([[]]), json!("trusted")] {
        let error = judged_inside_tls(&claim).await;
        assert!(matches!(error, ControlError::UnknownProtocol { .. }), "{claim}: {error:?}");
    }
}

#[tokio::test]
async fn a_claim_that_is_no_proof_is_the_wrong_token() {
    for proof in ["", "?", &"A".repeat(43), &"A".repeat(60_000)] {
        let error = judged_inside_tls(&json!({ "token": proof })).await;
        assert!(matches!(error, ControlError::WrongToken { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn strangers_of_all_kinds_get_one_and_the_same_refusal() {
    for claim in [json!({ "token": null }), json!({ "token": "?" }), json!({ "token": "A".repeat(43) })] {
        let listener = listening(&with_token(), &ControlLimits::default()).await;
        let client = with_token();
        let speak = async {
            let (mut frames, _) = tls_client(listener.local_addr(), &client).await;
            frames.send(&claim).await.unwrap();
            (frames.recv::<Value>().await.unwrap(), frames.recv::<Value>().await.unwrap())
        };
        let serve = async { listener.accept().await.unwrap().handshake().await };
        let (_, heard) = tokio::join!(serve, speak);
        assert_eq!(heard, (Some(json!("untrusted")), None));
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_at_its_deadline_and_holds_nobody_up() {
    let limits = ControlLimits { handshake_timeout: Duration::from_secs(2), ..ControlLimits::default() };
    let listener = listening(&with_token(), &limits).await;
    let mut silent = TcpStream::connect(listener.local_addr()).await.unwrap();
    let reaped = tokio::spawn(listener.accept().await.unwrap().handshake());
    let (at_server, at_client) = meeting_at(&listener, &with_token()).await;
    assert!(at_server.is_ok() && at_client.is_ok());
    let reaped = reaped.await.unwrap();
    assert!(matches!(reaped, Err(ControlError::HandshakeTimeout { .. })), "{reaped:?}");
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_server_that_never_proves_itself_is_given_up() {
    let mute = TcpListener::bind(anywhere()).await.unwrap();
    let limits = ControlLimits { handshake_timeout: Duration::from_millis(50), ..ControlLimits::default() };
    let met = connect(mute.local_addr().unwrap(), &with_token(), &limits).await;
    assert!(matches!(met, Err(ControlError::HandshakeTimeout { .. })), "{met:?}");
}

#[tokio::test]
async fn more_strangers_than_places_are_turned_away() {
    let listener = listening(&with_token(), &ControlLimits { half_open: 1, ..ControlLimits::default() }).await;
    let (addr, client, limits) = (listener.local_addr(), with_token(), ControlLimits::default());
    let _silent = TcpStream::connect(addr).await.unwrap();
    let place = listener.accept().await.unwrap();
    let turned_away = tokio::select! {
        met = connect(addr, &client, &limits) => met.unwrap_err(),
        _ = listener.accept() => panic!("a second stranger was let in"),
    };
    assert!(matches!(turned_away, ControlError::ClosedEarly { .. }), "{turned_away:?}");
    assert_eq!(listener.rejected_count(), 1);

    drop(place);
    let (at_server, at_client) = meeting_at(&listener, &client).await;
    assert!(at_server.is_ok() && at_client.is_ok());
}

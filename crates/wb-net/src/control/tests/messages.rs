//! Messages on a channel, and its end.

use serde_json::{Value, json};

use super::{bind_listener, channel_pair, handshake_with, tls_client, with_token};
use crate::control::{Channel, ControlError, ControlHello, ControlLimits, FrameError, PROTOCOL, handshake, proof};

#[tokio::test]
async fn a_closed_channel_ends_cleanly() {
    let (mut server, mut client) = channel_pair().await;
    client.send(&json!({ "last": true })).await.unwrap();
    client.close().await.unwrap();
    assert_eq!(server.recv::<Value>().await.unwrap(), Some(json!({ "last": true })));
    assert_eq!(server.recv::<Value>().await.unwrap(), None);
}

#[tokio::test]
async fn a_peer_that_vanishes_is_not_a_clean_end() {
    let (mut server, client) = channel_pair().await;
    drop(client);
    let end = server.recv::<Value>().await;
    assert!(matches!(end, Err(ControlError::ConnectionLost { source: FrameError::Closed, .. })), "{end:?}");
}

#[tokio::test]
async fn authenticated_peers_may_send_longer_messages() {
    let (server, client) = channel_pair().await;
    let long = "x".repeat(1 << 20);
    let ((mut sender, _server_receiver), (_client_sender, mut receiver)) = (server.split(), client.split());
    let (sent, received) = tokio::join!(sender.send(&long), receiver.recv::<String>());
    sent.unwrap();
    assert_eq!(received.unwrap(), Some(long));
}

#[tokio::test]
async fn halves_live_in_different_tasks() {
    let (server, client) = channel_pair().await;
    let echo = tokio::spawn(async move {
        let (mut sender, mut receiver) = server.split();
        while let Some(number) = receiver.recv::<u32>().await.unwrap() {
            sender.send(&number).await.unwrap();
        }
        sender.close().await.unwrap();
    });
    let (mut sender, mut receiver) = client.split();
    let send = tokio::spawn(async move {
        for number in 0..100_u32 {
            sender.send(&number).await.unwrap();
        }
        sender.close().await.unwrap();
    });
    let mut received = Vec::new();
    while let Some(number) = receiver.recv::<u32>().await.unwrap() {
        received.push(number);
    }
    assert_eq!(received, (0..100).collect::<Vec<_>>());
    send.await.unwrap();
    echo.await.unwrap();
}

#[tokio::test]
async fn a_message_longer_than_the_limit_is_not_sent_and_the_channel_stays_usable() {
    let (mut server, mut client) = channel_pair().await;
    let refused = client.send(&"x".repeat(ControlLimits::default().max_frame)).await;
    assert!(
        matches!(refused, Err(ControlError::ConnectionLost { source: FrameError::TooLong { .. }, .. })),
        "{refused:?}"
    );
    client.send("short").await.unwrap();
    assert_eq!(server.recv::<String>().await.unwrap().as_deref(), Some("short"));
}

#[tokio::test]
async fn a_message_of_another_type_is_reported_and_the_next_one_is_read() {
    let (mut server, mut client): (Channel, Channel) = channel_pair().await;
    client.send("text").await.unwrap();
    client.send(&7).await.unwrap();
    let error = server.recv::<u32>().await.unwrap_err();
    assert!(matches!(error, ControlError::ConnectionLost { source: FrameError::Unexpected { .. }, .. }), "{error:?}");
    assert_eq!(server.recv::<u32>().await.unwrap(), Some(7));
}

#[tokio::test]
async fn another_version_is_refused_and_both_sides_name_both() {
    let listener = bind_listener(&with_token(), &ControlLimits::default()).await;
    let (client, peer) = (with_token(), listener.local_addr());
    let newer = ControlHello { protocol: PROTOCOL + 1, program: "9.9.9\u{1b}[2J".into() };
    let speak = async {
        let (mut frames, context) = tls_client(peer, &client).await;
        proof::authenticate(&mut frames, &context, &client).await.unwrap();
        handshake::exchange_hellos(&mut frames, peer, newer).await.unwrap_err()
    };
    let serve = async { listener.accept().await.unwrap().handshake().await.unwrap_err() };
    let (at_server, at_client) = tokio::join!(serve, speak);
    for error in [&at_server, &at_client] {
        let ControlError::VersionMismatch { local_hello, peer_hello, .. } = error else { panic!("{error:?}") };
        assert_eq!(local_hello.protocol.abs_diff(peer_hello.protocol), 1);
    }
    assert!(at_server.to_string().contains("9.9.9\\u{1b}[2J"), "{at_server}");

    let (at_server, at_client) = handshake_with(&listener, &with_token()).await;
    assert!(at_server.is_ok() && at_client.is_ok());
}

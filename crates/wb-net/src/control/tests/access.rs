//! Access by tokens and pinned keys, valid and invalid, on either side.

use super::{Outcome, credentials_with, handshake_between, pinned_to_each_other, shared_token, token, with_token};
use crate::control::{ControlError, ControlHello, ControlLimits, Credentials, Role, Trust, connect};

async fn talk_both_ways((server, client): Outcome) {
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    client.send("from the client").await.unwrap();
    server.send("from the server").await.unwrap();
    assert_eq!(server.recv::<String>().await.unwrap().as_deref(), Some("from the client"));
    assert_eq!(client.recv::<String>().await.unwrap().as_deref(), Some("from the server"));
}

#[tokio::test]
async fn the_same_token_authenticates_both_sides() {
    talk_both_ways(handshake_between(&with_token(), &with_token()).await).await;
}

#[tokio::test]
async fn keys_pinned_on_both_sides_let_both_talk() {
    let (server, client) = pinned_to_each_other();
    talk_both_ways(handshake_between(&server, &client).await).await;
}

#[tokio::test]
async fn a_server_takes_a_token_or_a_pinned_key() {
    let (pinned, client) = pinned_to_each_other();
    let server = Credentials { trust: Trust::Either(shared_token(), pinned.trust.pins().to_vec()), ..pinned };
    talk_both_ways(handshake_between(&server, &client).await).await;
    talk_both_ways(handshake_between(&server, &with_token()).await).await;
}

#[tokio::test]
async fn each_side_identifies_the_other() {
    let (server, client) = (with_token(), with_token());
    let (at_server, at_client) = handshake_between(&server, &client).await;
    let (at_server, at_client) = (at_server.unwrap(), at_client.unwrap());
    assert_eq!(at_server.info().key, client.identity.fingerprint());
    assert_eq!(at_client.info().key, server.identity.fingerprint());
    assert_eq!(at_server.peer_addr(), at_client.local_addr());
    assert_eq!(at_client.peer_addr(), at_server.local_addr());
    assert_eq!(at_client.info().hello, ControlHello::local());
}

#[tokio::test]
async fn another_token_is_refused_and_both_sides_report_it() {
    let client = credentials_with(Trust::Token(token("wrong horse battery staple")));
    let (at_server, at_client) = handshake_between(&with_token(), &client).await;
    assert!(matches!(at_server, Err(ControlError::WrongToken { peer_role: Role::Client, .. })), "{at_server:?}");
    let error = at_client.unwrap_err();
    assert!(matches!(error, ControlError::Refused { peer_role: Role::Server, with_token: true, .. }), "{error:?}");
    assert!(error.to_string().contains("the token does not match the server's"), "{error}");
}

#[tokio::test]
async fn a_client_refuses_a_server_with_another_key_and_names_it() {
    let ((server, client), (elsewhere, _)) = (pinned_to_each_other(), pinned_to_each_other());
    let impostor = Credentials { identity: elsewhere.identity, ..server };
    let (at_server, at_client) = handshake_between(&impostor, &client).await;
    let presented_key = impostor.identity.fingerprint();
    assert!(
        matches!(at_client, Err(ControlError::WrongKey { presented, .. }) if presented == presented_key),
        "{at_client:?}"
    );
    assert!(matches!(at_server, Err(ControlError::Refused { peer_role: Role::Client, .. })), "{at_server:?}");
}

#[tokio::test]
async fn a_server_refuses_a_client_with_another_key_and_both_sides_name_it() {
    let ((server, client), (elsewhere, _)) = (pinned_to_each_other(), pinned_to_each_other());
    let impostor = Credentials { identity: elsewhere.identity, ..client };
    let (at_server, at_client) = handshake_between(&server, &impostor).await;
    let presented_key = impostor.identity.fingerprint();
    assert!(
        matches!(at_server, Err(ControlError::WrongKey { presented, .. }) if presented == presented_key),
        "{at_server:?}"
    );
    assert!(matches!(at_client, Err(ControlError::Refused { key, .. }) if key == presented_key), "{at_client:?}");
}

#[tokio::test]
async fn a_token_does_not_open_a_server_with_pins() {
    let (server, _) = pinned_to_each_other();
    let (at_server, at_client) = handshake_between(&server, &with_token()).await;
    assert!(matches!(at_server, Err(ControlError::WrongKey { .. })), "{at_server:?}");
    assert!(matches!(at_client, Err(ControlError::Refused { with_token: true, .. })), "{at_client:?}");
}

#[tokio::test]
async fn a_client_that_pins_a_server_still_needs_its_token() {
    let server = with_token();
    let client = credentials_with(Trust::Pinned(vec![server.identity.fingerprint()]));
    let (at_server, at_client) = handshake_between(&server, &client).await;
    assert!(matches!(at_server, Err(ControlError::NoToken { is: Role::Client, .. })), "{at_server:?}");
    assert!(matches!(at_client, Err(ControlError::Refused { with_token: false, .. })), "{at_client:?}");
}

#[tokio::test]
async fn a_server_that_trusts_the_client_must_prove_itself_all_the_same() {
    let client = with_token();
    let server = credentials_with(Trust::Pinned(vec![client.identity.fingerprint()]));
    let (at_server, at_client) = handshake_between(&server, &client).await;
    assert!(matches!(at_client, Err(ControlError::NoToken { is: Role::Server, .. })), "{at_client:?}");
    assert!(matches!(at_server, Err(ControlError::Refused { peer_role: Role::Client, .. })), "{at_server:?}");
}

#[tokio::test]
async fn an_empty_list_of_pins_refuses_everybody() {
    let nobody = credentials_with(Trust::Pinned(Vec::new()));
    let (at_server, at_client) = handshake_between(&nobody, &with_token()).await;
    assert!(at_server.is_err() && at_client.is_err());
}

#[tokio::test]
async fn a_refused_connection_is_reported_as_such() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect(free, &with_token(), &ControlLimits::default()).await.unwrap_err();
    assert!(matches!(error, ControlError::ConnectionRefused { .. }), "{error:?}");
}

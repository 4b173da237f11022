//! A man in the middle who terminates TLS on both sides.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::{
    bind_listener, credentials_with, loopback_addr, pinned_to_each_other, shared_token, tls_client, tls_server, token,
    with_token,
};
use crate::control::handshake::{HandshakeConfig, encrypt};
use crate::control::{Channel, ControlError, ControlLimits, Credentials, Role, Trust, connect, tls};

/// Terminates TLS towards both sides and forwards every message in both directions, until one side closes
async fn relay(from: TcpListener, to: SocketAddr) {
    let mallory = credentials_with(Trust::Token(token("mallory knows another")));
    let (stream, _) = from.accept().await.unwrap();
    let mut client = tls_server(stream, &mallory).await;
    let (mut server, _) = tls_client(to, &mallory).await;
    loop {
        tokio::select! {
            message = client.recv::<Value>() => match message {
                Ok(Some(message)) => server.send(&message).await.unwrap(),
                _ => break,
            },
            message = server.recv::<Value>() => match message {
                Ok(Some(message)) => client.send(&message).await.unwrap(),
                _ => break,
            },
        }
    }
    let _ = (client.close().await, server.close().await);
}

#[tokio::test]
async fn a_relay_that_ends_tls_on_both_sides_is_refused() {
    let listener = bind_listener(&with_token(), &ControlLimits::default()).await;
    let relay_listener = TcpListener::bind(loopback_addr()).await.unwrap();
    let (relay_addr, client, limits) = (relay_listener.local_addr().unwrap(), with_token(), ControlLimits::default());
    // In a task of its own: if the relay were trusted, it would forward for as long as both sides talk.
    tokio::spawn(relay(relay_listener, listener.local_addr()));
    let serve = async { listener.accept().await.unwrap().handshake().await };
    let (at_server, at_client) = tokio::join!(serve, connect(relay_addr, &client, &limits));
    assert!(matches!(at_server, Err(ControlError::WrongToken { peer_role: Role::Client, .. })), "{at_server:?}");
    assert!(matches!(at_client, Err(ControlError::Refused { .. })), "{at_client:?}");
}

/// Returns the error of a client whose server trusts it and responds with a claim derived from the client's own
async fn client_of_impostor(client: &Credentials, answer: impl FnOnce(Value) -> Value) -> ControlError {
    let listener = TcpListener::bind(loopback_addr()).await.unwrap();
    let (addr, limits) = (listener.local_addr().unwrap(), ControlLimits::default());
    let impostor = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut frames = tls_server(stream, &with_token()).await;
        let claim: Value = frames.expect().await.unwrap();
        frames.send("trusted").await.unwrap();
        frames.send(&answer(claim)).await.unwrap();
        assert_eq!(frames.expect::<String>().await.unwrap(), "untrusted");
    };
    tokio::join!(connect(addr, client, &limits), impostor).0.unwrap_err()
}

// A server without the token could send the client's proof back.
#[tokio::test]
async fn a_client_rejects_its_own_proof_reflected() {
    let error = client_of_impostor(&credentials_with(Trust::Token(shared_token())), |claim| claim).await;
    assert!(matches!(error, ControlError::WrongToken { peer_role: Role::Server, .. }), "{error:?}");
}

#[tokio::test]
async fn a_client_rejects_a_server_that_trusts_it_without_proof() {
    let error = client_of_impostor(&with_token(), |_| json!({ "token": null })).await;
    assert!(matches!(error, ControlError::NoToken { is: Role::Server, .. }), "{error:?}");
}

#[tokio::test]
async fn a_client_with_pins_ends_tls_before_it_shows_its_own_key() {
    let (_, client) = pinned_to_each_other();
    let (at_client, at_impostor) = client_of_tls_server(&client, tls::server_config(&with_token()).unwrap()).await;
    assert!(matches!(at_client, Err(ControlError::WrongKey { .. })), "{at_client:?}");
    assert!(at_impostor.is_err());
}

#[tokio::test]
async fn a_copied_certificate_without_its_key_is_rejected_by_the_client() {
    let (server, client) = pinned_to_each_other();
    let mut config = tls::server_config(&server).unwrap();
    config.cert_resolver = Arc::new(stolen_certificate(&server));
    let (at_client, at_impostor) = client_of_tls_server(&client, config).await;
    assert!(matches!(at_client, Err(ControlError::UnknownProtocol { .. })), "{at_client:?}");
    assert!(at_impostor.is_err());
}

#[tokio::test]
async fn a_copied_certificate_without_its_key_is_rejected_by_the_server() {
    let (server, client) = pinned_to_each_other();
    let listener = bind_listener(&server, &ControlLimits::default()).await;
    let mut config = tls::client_config(&client).unwrap();
    config.client_auth_cert_resolver = Arc::new(stolen_certificate(&client));
    let peer = listener.local_addr();
    let impostor = async {
        encrypt(super::recorded(TcpStream::connect(peer).await?), peer, HandshakeConfig::Client(Arc::new(config))).await
    };
    let (at_server, _) = tokio::join!(async { listener.accept().await.unwrap().handshake().await }, impostor);
    assert!(matches!(at_server, Err(ControlError::UnknownProtocol { .. })), "{at_server:?}");
}

/// One identity's certificate with another identity's key
fn stolen_certificate(from: &Credentials) -> SingleCertAndKey {
    let (certificate, _) = from.identity.certificate_and_key();
    let (_, other_key) = with_token().identity.certificate_and_key();
    let PrivateKeyDer::Pkcs8(other_key) = other_key else { panic!("a key of another form") };
    CertifiedKey::new(certificate, any_eddsa_type(&other_key).unwrap()).into()
}

/// The results of a client and of a server that performs only a TLS handshake with this configuration
async fn client_of_tls_server(
    client: &Credentials,
    config: ServerConfig,
) -> (Result<Channel, ControlError>, io::Result<()>) {
    let listener = TcpListener::bind(loopback_addr()).await.unwrap();
    let (addr, limits) = (listener.local_addr().unwrap(), ControlLimits::default());
    let serve = async {
        let (stream, peer) = listener.accept().await?;
        encrypt(super::recorded(stream), peer, HandshakeConfig::Server(Arc::new(config))).await.map(drop)
    };
    tokio::join!(connect(addr, client, &limits), serve)
}

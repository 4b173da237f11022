//! Tests with both sides on the loopback interface, and with attackers between them.

mod access;
mod frames;
mod messages;
mod relay;
mod unauthenticated;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::channel::FramedTls;
use super::foreign_peer::{FirstBytes, RecordedStream};
use super::handshake::{HandshakeConfig, auth_context, encrypt};
use super::proof::AuthContext;
use super::{
    Channel, ControlError, ControlLimits, ControlListener, Credentials, Fingerprint, Identity, Role, Token, Trust,
    connect, tls,
};

const MAX_FRAME: usize = 64 * 1024;

fn token(text: &str) -> Token {
    text.parse().unwrap()
}

fn shared_token() -> Token {
    token("correct horse battery staple")
}

fn credentials_with(trust: Trust) -> Credentials {
    Credentials { identity: Identity::generate().unwrap(), trust }
}

fn with_token() -> Credentials {
    credentials_with(Trust::Token(shared_token()))
}

/// Two sides that trust only each other's keys
fn pinned_to_each_other() -> (Credentials, Credentials) {
    let (first, second) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let pinned = |key: Fingerprint| Trust::Pinned(vec![key]);
    let (trust, other_trust) = (pinned(second.fingerprint()), pinned(first.fingerprint()));
    (Credentials { identity: first, trust }, Credentials { identity: second, trust: other_trust })
}

async fn bind_listener(credentials: &Credentials, limits: &ControlLimits) -> ControlListener {
    ControlListener::bind(loopback_addr(), credentials, limits).await.unwrap()
}

fn loopback_addr() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// The result of each side, the server's first
type Outcome = (Result<Channel, ControlError>, Result<Channel, ControlError>);

async fn handshake_between(server: &Credentials, client: &Credentials) -> Outcome {
    let listener = bind_listener(server, &ControlLimits::default()).await;
    handshake_with(&listener, client).await
}

async fn handshake_with(listener: &ControlListener, client: &Credentials) -> Outcome {
    let limits = ControlLimits::default();
    let serve = async { listener.accept().await?.handshake().await };
    tokio::join!(serve, connect(listener.local_addr(), client, &limits))
}

async fn channel_pair() -> (Channel, Channel) {
    let (server, client) = handshake_between(&with_token(), &with_token()).await;
    (server.unwrap(), client.unwrap())
}

/// A client that performs only the TLS handshake
async fn tls_client(to: SocketAddr, credentials: &Credentials) -> (FramedTls, AuthContext) {
    let config = HandshakeConfig::Client(Arc::new(tls::client_config(credentials).unwrap()));
    let stream = encrypt(recorded(TcpStream::connect(to).await.unwrap()), to, config).await.unwrap();
    let context = auth_context(&stream, Role::Client, to).unwrap();
    (FramedTls::new(stream, MAX_FRAME), context)
}

/// A server that performs only the TLS handshake
async fn tls_server(stream: TcpStream, credentials: &Credentials) -> FramedTls {
    let config = HandshakeConfig::Server(Arc::new(tls::server_config(credentials).unwrap()));
    let peer = stream.peer_addr().unwrap();
    FramedTls::new(encrypt(recorded(stream), peer, config).await.unwrap(), MAX_FRAME)
}

fn recorded(stream: TcpStream) -> RecordedStream {
    RecordedStream::new(stream, FirstBytes::default())
}

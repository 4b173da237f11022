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
use super::handshake::{HandshakeConfig, auth_context, encrypt};
use super::proof::AuthContext;
use super::{
    Channel, ControlError, ControlLimits, ControlListener, Credentials, Fingerprint, Identity, Role, Token, Trust,
    connect, tls,
};

const MOST: usize = 64 * 1024;

fn token(text: &str) -> Token {
    text.parse().unwrap()
}

fn shared() -> Token {
    token("correct horse battery staple")
}

fn with(trust: Trust) -> Credentials {
    Credentials { identity: Identity::generate().unwrap(), trust }
}

fn with_token() -> Credentials {
    with(Trust::Token(shared()))
}

/// Two sides that trust only each other's keys
fn pinned_to_each_other() -> (Credentials, Credentials) {
    let (first, second) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let pinned = |key: Fingerprint| Trust::Pinned(vec![key]);
    let (trust, other_trust) = (pinned(second.fingerprint()), pinned(first.fingerprint()));
    (Credentials { identity: first, trust }, Credentials { identity: second, trust: other_trust })
}

async fn listening(credentials: &Credentials, limits: &ControlLimits) -> ControlListener {
    ControlListener::bind(anywhere(), credentials, limits).await.unwrap()
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// The result of each side, the server's first
type Outcome = (Result<Channel, ControlError>, Result<Channel, ControlError>);

async fn meeting_of(server: &Credentials, client: &Credentials) -> Outcome {
    let listener = listening(server, &ControlLimits::default()).await;
    meeting_at(&listener, client).await
}

async fn meeting_at(listener: &ControlListener, client: &Credentials) -> Outcome {
    let limits = ControlLimits::default();
    let serve = async { listener.accept().await?.handshake().await };
    tokio::join!(serve, connect(listener.local_addr(), client, &limits))
}

async fn channels() -> (Channel, Channel) {
    let (server, client) = meeting_of(&with_token(), &with_token()).await;
    (server.unwrap(), client.unwrap())
}

/// A client that performs only the TLS handshake
async fn tls_client(to: SocketAddr, credentials: &Credentials) -> (FramedTls<TcpStream>, AuthContext) {
    let config = HandshakeConfig::Client(Arc::new(tls::client_config(credentials).unwrap()));
    let stream = encrypt(TcpStream::connect(to).await.unwrap(), to, config).await.unwrap();
    let context = auth_context(&stream, Role::Client, to).unwrap();
    (FramedTls::new(stream, MOST), context)
}

/// A server that performs only the TLS handshake
async fn tls_server(stream: TcpStream, credentials: &Credentials) -> FramedTls<TcpStream> {
    let config = HandshakeConfig::Server(Arc::new(tls::server_config(credentials).unwrap()));
    let peer = stream.peer_addr().unwrap();
    FramedTls::new(encrypt(stream, peer, config).await.unwrap(), MOST)
}

//! Two sides on the loopback, and those who come between.

mod frames;
mod messages;
mod middle;
mod strangers;
mod who_gets_in;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::channel::Frames;
use super::handshake::{Side, encrypt, meet};
use super::proof::Meeting;
use super::{
    Channel, ControlError, Credentials, Fingerprint, Identity, Limits, Listener, Role, Token, Trust, connect, tls,
};

const MOST: usize = 64 * 1024;

fn token(text: &str) -> Token {
    text.parse().unwrap()
}

fn shared() -> Token {
    token("correct horse battery staple")
}

fn with(trust: Trust) -> Credentials {
    Credentials { identity: Identity::fresh().unwrap(), trust }
}

fn with_token() -> Credentials {
    with(Trust::Token(shared()))
}

/// Two sides that trust each other's keys and nothing else
fn pinned_to_each_other() -> (Credentials, Credentials) {
    let (one, other) = (Identity::fresh().unwrap(), Identity::fresh().unwrap());
    let pinned = |key: Fingerprint| Trust::Pinned(vec![key]);
    let (trust, other_trust) = (pinned(other.fingerprint()), pinned(one.fingerprint()));
    (Credentials { identity: one, trust }, Credentials { identity: other, trust: other_trust })
}

async fn listening(credentials: &Credentials, limits: &Limits) -> Listener {
    Listener::bind(anywhere(), credentials, limits).await.unwrap()
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// What each side gets, the server's first
type Outcome = (Result<Channel, ControlError>, Result<Channel, ControlError>);

async fn meeting_of(server: &Credentials, client: &Credentials) -> Outcome {
    let listener = listening(server, &Limits::default()).await;
    meeting_at(&listener, client).await
}

async fn meeting_at(listener: &Listener, client: &Credentials) -> Outcome {
    let limits = Limits::default();
    let serve = async { listener.accept().await?.handshake().await };
    tokio::join!(serve, connect(listener.local_addr(), client, &limits))
}

async fn channels() -> (Channel, Channel) {
    let (server, client) = meeting_of(&with_token(), &with_token()).await;
    (server.unwrap(), client.unwrap())
}

/// A client that goes no further than TLS
async fn tls_client(to: SocketAddr, credentials: &Credentials) -> (Frames<TcpStream>, Meeting) {
    let side = Side::Client(Arc::new(tls::client(credentials).unwrap()));
    let stream = encrypt(TcpStream::connect(to).await.unwrap(), to, side).await.unwrap();
    let meeting = meet(&stream, Role::Client, to).unwrap();
    (Frames::new(stream, MOST), meeting)
}

/// A server that goes no further than TLS
async fn tls_server(stream: TcpStream, credentials: &Credentials) -> Frames<TcpStream> {
    let side = Side::Server(Arc::new(tls::server(credentials).unwrap()));
    let peer = stream.peer_addr().unwrap();
    Frames::new(encrypt(stream, peer, side).await.unwrap(), MOST)
}

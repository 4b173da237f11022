//! The side that accepts connections.

use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::timed::UNLIMITED;
use crate::transfer::{Pace, Stream, json_text, kill_self, unix_address};

enum Server {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Server {
    fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(server) => Stream::Tcp(server.accept()?.0),
            Self::Unix(server) => Stream::Unix(server.accept()?.0),
        })
    }
}

/// Serves connections, one after the other, until it is ended.
pub fn listen(arguments: &Arguments) -> io::Result<()> {
    if arguments.has_fault("never-ready") {
        sleep(Duration::from_secs(3600));
    }
    let server = bind(arguments)?;
    if arguments.has_fault("lie") {
        return announce_lies(&server);
    }
    loop {
        let stream = server.accept()?;
        arguments.print_negotiated();
        serve(arguments, stream)?;
    }
}

fn bind(arguments: &Arguments) -> io::Result<Server> {
    if arguments.has_fault("unix") {
        let number = std::process::id();
        let server = UnixListener::bind_addr(&unix_address(number)?)?;
        println!("{{\"listening\": \"unix:{number}\"}}");
        return Ok(Server::Unix(server));
    }
    let port = if arguments.taken == 0 { arguments.port } else { arguments.taken };
    let server = TcpListener::bind((arguments.host.as_str(), port))?;
    println!("{{\"listening\": \"{}:{}\"}}", arguments.host, server.local_addr()?.port());
    Ok(Server::Tcp(server))
}

fn serve(arguments: &Arguments, mut stream: Stream) -> io::Result<()> {
    let mut header = [0; 8];
    if stream.read_exact(&mut header).is_err() {
        return Ok(());
    }
    let requested = u64::from_be_bytes(header);
    if arguments.has_fault("killed") && requested > 1 {
        kill_self()?;
    }
    let received = stream.receive(&Pace::new(None))?;
    if requested == UNLIMITED {
        let sent = stream.send_until_refused();
        println!("{{\"received\": {received}, \"sent\": {sent}, \"error\": null}}");
        return Ok(());
    }
    let count = if arguments.has_fault("close-early") { requested.min(1_600_000) } else { requested };
    let (sent, error) = match stream.send(count, &Pace::new(None)) {
        Ok(sent) => (sent, "null".to_owned()),
        Err(error) => (0, json_text(&error)),
    };
    drop(stream);
    println!("{{\"received\": {received}, \"sent\": {sent}, \"error\": {error}}}");
    Ok(())
}

/// Reports what its dialer claims, which moves nothing: the claim is the whole stream, lines of JSON without what both print.
fn announce_lies(server: &Server) -> io::Result<()> {
    loop {
        let mut claims = String::new();
        server.accept()?.read_to_string(&mut claims)?;
        print!("{claims}");
    }
}

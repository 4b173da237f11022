//! Standard input and output as what the agent speaks through.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdStream;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// This process's standard input and output, which must be pipes or sockets, as they are when a
/// controller or ssh started it. They are read without a thread, so that the process stays one thread.
pub fn stdio() -> io::Result<(Box<dyn AsyncRead + Unpin>, Box<dyn AsyncWrite + Unpin>)> {
    let input: Box<dyn AsyncRead + Unpin> = match kind(io::stdin())? {
        Kind::Pipe(fd) => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket(stream) => Box::new(stream),
    };
    let output: Box<dyn AsyncWrite + Unpin> = match kind(io::stdout())? {
        Kind::Pipe(fd) => Box::new(pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket(stream) => Box::new(stream),
    };
    Ok((input, output))
}

enum Kind {
    Pipe(OwnedFd),
    Socket(UnixStream),
}

fn kind(stream: impl AsFd) -> io::Result<Kind> {
    let fd = stream.as_fd().try_clone_to_owned()?;
    let file = File::from(fd);
    let kind = file.metadata()?.file_type();
    let fd = OwnedFd::from(file);
    if kind.is_fifo() {
        Ok(Kind::Pipe(fd))
    } else if kind.is_socket() {
        let stream = StdStream::from(fd);
        stream.set_nonblocking(true)?;
        Ok(Kind::Socket(UnixStream::from_std(stream)?))
    } else {
        Err(io::Error::other("the agent is spoken to through a pipe: it is started by `weighbridge run`, not by hand"))
    }
}

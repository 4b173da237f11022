//! Standard input and output as the agent's pipe.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdStream;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Returns this process's standard input and output as async streams. They must be pipes or sockets, as they are when
/// started by a controller or ssh; they are read without a helper thread, so that the process stays single-threaded.
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
        Err(io::Error::other(
            "standard input and output must be pipes: the agent is started by `weighbridge run`, not by hand",
        ))
    }
}

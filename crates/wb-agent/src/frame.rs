//! Framing: length-prefixed JSON header and binary payload.
//!
//! A frame consists of the header's length and the payload's length (four bytes each, little-endian), the header in
//! JSON, and the raw payload. Lengths are checked before any allocation, and large buffers grow with the bytes received,
//! not with the announced length.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Maximum length of a header and of a payload, in bytes; longer data is split over several frames.
pub const MAX_LENGTH: u32 = 16 << 20;

/// Capacity of the buffer of a pipe, in bytes; also for the first read of a header or payload.
const BUFFER: usize = 64 << 10;

/// Buffers a pipe, so that short messages need one system call.
pub(crate) fn buffered<R: AsyncRead>(input: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER, input)
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("pipe error: {0}")]
    Io(#[from] io::Error),
    #[error("the pipe ended inside a message")]
    Truncated,
    /// An impossible length: the bytes come from something else.
    #[error("invalid message header {0:?}: something else writes to the agent's pipe, such as a login script")]
    InvalidLength(String),
    #[error("message too long to send: {0} bytes, at most {MAX_LENGTH}")]
    TooLarge(usize),
    #[error("invalid message header: {0}")]
    Header(#[from] serde_json::Error),
}

impl FrameError {
    /// Whether the message itself cannot be written, whatever the pipe; nothing of it was written.
    pub(crate) fn is_of_message(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Header(_))
    }
}

/// Reads the next frame; none at the end of the pipe.
pub async fn read<T: DeserializeOwned>(
    input: &mut (impl AsyncRead + Unpin),
) -> Result<Option<(T, Vec<u8>)>, FrameError> {
    let mut lengths = [0; 8];
    match fill(input, &mut lengths).await? {
        0 => return Ok(None),
        8 => {}
        _ => return Err(FrameError::Truncated),
    }
    let [a, b, c, d, e, f, g, h] = lengths;
    let (header, payload) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if header.max(payload) > MAX_LENGTH {
        return Err(FrameError::InvalidLength(String::from_utf8_lossy(&lengths).into_owned()));
    }
    let header = read_bytes(input, header).await?;
    let payload = read_bytes(input, payload).await?;
    Ok(Some((serde_json::from_slice(&header)?, payload)))
}

/// Writes a frame and flushes it.
pub async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    header: &impl Serialize,
    payload: &[u8],
) -> Result<(), FrameError> {
    let header = serde_json::to_vec(header)?;
    let checked = |length: usize| {
        u32::try_from(length).ok().filter(|length| *length <= MAX_LENGTH).ok_or(FrameError::TooLarge(length))
    };
    let lengths = [checked(header.len())?.to_le_bytes(), checked(payload.len())?.to_le_bytes()];
    let mut start = [lengths.as_flattened(), &header].concat();
    // A short payload is written together with the header; a long one is not copied.
    if payload.len() <= BUFFER {
        start.extend_from_slice(payload);
        output.write_all(&start).await?;
    } else {
        output.write_all(&start).await?;
        output.write_all(payload).await?;
    }
    Ok(output.flush().await?)
}

/// Reads until the buffer is full or the pipe ends; returns the number of bytes read.
async fn fill(input: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]).await? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

async fn read_bytes(input: &mut (impl AsyncRead + Unpin), length: u32) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::with_capacity(BUFFER.min(length as usize));
    input.take(u64::from(length)).read_to_end(&mut bytes).await?;
    if bytes.len() == length as usize { Ok(bytes) } else { Err(FrameError::Truncated) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::protocol::RequestMessage;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<(Value, Vec<u8>)>, FrameError> {
        run(async {
            let mut input = bytes;
            let mut frames = Vec::new();
            while let Some(frame) = read(&mut input).await? {
                frames.push(frame);
            }
            Ok(frames)
        })
    }

    fn encoded(header: &Value, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        run(write(&mut bytes, header, payload)).unwrap();
        bytes
    }

    #[test]
    fn a_login_banner_is_not_taken_for_a_message() {
        let error = read_all(b"Welcome to Debian\n").unwrap_err();
        assert!(error.to_string().starts_with("invalid message header \"Welcome \""), "{error}");
    }

    // A stranger could otherwise have any amount of memory allocated by four bytes.
    #[test]
    fn an_announced_length_allocates_nothing() {
        let bytes = [MAX_LENGTH.to_le_bytes(); 2].concat();
        assert!(matches!(read_all(&bytes), Err(FrameError::Truncated)));
        assert!(matches!(read_all(&[255; 8]), Err(FrameError::InvalidLength(_))));
    }

    #[test]
    fn a_payload_above_the_limit_is_not_sent() {
        let payload = vec![0; MAX_LENGTH as usize + 1];
        assert!(matches!(run(write(&mut Vec::new(), &json!(1), &payload)), Err(FrameError::TooLarge(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_header_that_is_almost_a_request_is_an_error(text in r#"\{"id":[0-9]{1,3},"request":[a-z"{}\[\]:0-9-]{0,30}\}?"#) {
            let bytes = [&(text.len() as u32).to_le_bytes()[..], &[0; 4], text.as_bytes()].concat();
            let _ = run(read::<RequestMessage>(&mut bytes.as_slice()));
        }

        #[test]
        fn frames_survive_a_round_trip(texts: Vec<String>, payload in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| encoded(&json!(text), &payload)).collect();
            let frames = read_all(&bytes).unwrap();
            prop_assert_eq!(frames, texts.iter().map(|text| (json!(text), payload.clone())).collect::<Vec<_>>());
        }

        #[test]
        fn garbage_and_cut_frames_are_errors_and_never_panic(
            garbage in proptest::collection::vec(any::<u8>(), 0..200),
            small: bool,
            cut in 1usize..40,
        ) {
            let mut bytes = garbage;
            if small && bytes.len() >= 8 {
                for index in [1, 2, 3, 5, 6, 7] {
                    bytes[index] = 0;
                }
            }
            let _ = read_all(&bytes);
            let _ = run(read::<RequestMessage>(&mut bytes.as_slice()));
            let mut complete = encoded(&json!({ "id": 1 }), b"some payload that is long enough to be cut anywhere");
            complete.truncate(complete.len() - cut);
            prop_assert!(matches!(read_all(&complete), Err(FrameError::Truncated)));
        }
    }
}

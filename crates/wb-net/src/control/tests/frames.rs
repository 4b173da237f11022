//! Frames in pieces, truncated, too long, and of anything but JSON.

use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::prelude::*;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::control::{FrameError, FrameReader, FrameWriter};

const MAX_FRAME: usize = 64 * 1024;
const PIECE: usize = 16 * 1024;

/// A stream that reads and writes in pieces of these sizes, and is pending before each
#[derive(Default)]
struct Pieces {
    bytes: VecDeque<u8>,
    sizes: Vec<usize>,
    turn: usize,
    waited: bool,
}

impl Pieces {
    fn new(bytes: &[u8], sizes: &[usize]) -> Self {
        Self { bytes: bytes.iter().copied().collect(), sizes: sizes.to_vec(), ..Self::default() }
    }

    fn next_size(&mut self) -> Poll<usize> {
        self.waited = !self.waited;
        if self.waited {
            return Poll::Pending;
        }
        self.turn += 1;
        Poll::Ready(self.sizes.get(self.turn % self.sizes.len().max(1)).copied().unwrap_or(usize::MAX).max(1))
    }
}

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.next_size().map(|size| {
            let size = size.min(into.remaining()).min(self.bytes.len());
            into.put_slice(&self.bytes.drain(..size).collect::<Vec<u8>>());
            Ok(())
        })
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.next_size().map(|size| {
            let size = size.min(bytes.len());
            self.bytes.extend(&bytes[..size]);
            Ok(size)
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Reads with a cancellation at every await, and checks the allocated memory
async fn read_cancelling(reader: &mut FrameReader, from: &mut Pieces) -> Result<Option<Value>, FrameError> {
    loop {
        let read = tokio::select! {
            biased;
            read = reader.read(from) => Some(read),
            () = ready(()) => None,
        };
        assert!(reader.allocated() <= 4 + MAX_FRAME + PIECE, "{} bytes allocated", reader.allocated());
        if let Some(read) = read {
            return read;
        }
    }
}

/// Reads all values until the end or an error
fn read_all(bytes: &[u8], sizes: &[usize]) -> (Vec<Value>, Option<FrameError>) {
    let (mut from, mut reader) = (Pieces::new(bytes, sizes), FrameReader::new(MAX_FRAME));
    let mut values = Vec::new();
    run(async {
        loop {
            match read_cancelling(&mut reader, &mut from).await {
                Ok(Some(value)) => values.push(value),
                Ok(None) => return (values, None),
                Err(error) => return (values, Some(error)),
            }
        }
    })
}

fn frame(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat()
}

#[test]
fn a_length_of_four_gigabytes_is_refused_without_allocating() {
    let (mut from, mut reader) = (Pieces::new(&[0xff; 5000], &[]), FrameReader::new(MAX_FRAME));
    for _ in 0..2 {
        let error = run(read_cancelling(&mut reader, &mut from)).unwrap_err();
        assert!(matches!(error, FrameError::TooLong { length: 0xffff_ffff, max_length: MAX_FRAME }), "{error:?}");
        assert!(reader.allocated() < 100);
    }
}

// A stranger could otherwise have any amount of memory allocated by four bytes.
#[test]
fn memory_grows_with_received_bytes_not_the_announced_length() {
    let mut bytes = (MAX_FRAME as u32).to_be_bytes().to_vec();
    bytes.extend([b' '; 100]);
    let (mut from, mut reader) = (Pieces::new(&bytes, &[]), FrameReader::new(MAX_FRAME));
    let error = run(read_cancelling(&mut reader, &mut from)).unwrap_err();
    assert!(matches!(error, FrameError::Truncated { arrived: 104 }), "{error:?}");
    assert!(reader.allocated() <= 104 + PIECE);
}

#[test]
fn a_frame_cut_inside_is_truncated_and_one_cut_at_its_bounds_is_not() {
    let whole = frame(br#"{"a":[1,2,3]}"#);
    assert!(matches!(read_all(&[], &[]), (values, None) if values.is_empty()));
    for cut in 1..whole.len() {
        let (values, error) = read_all(&whole[..cut], &[]);
        assert!(values.is_empty());
        assert!(matches!(error, Some(FrameError::Truncated { arrived }) if arrived == cut), "{cut}: {error:?}");
    }
    assert!(matches!(read_all(&whole, &[]), (values, None) if values.len() == 1));
}

#[test]
fn invalid_json_is_reported_with_its_start() {
    for body in [&b""[..], b"\x00\x01", b"{", b"[1,2", b"nul", b"{}{}", &[0xff; 300]] {
        let (values, error) = read_all(&frame(body), &[]);
        assert!(values.is_empty() && matches!(error, Some(FrameError::NotJson { .. })), "{body:?}: {error:?}");
    }
    let (_, error) = read_all(&frame(b"HTTP/1.1 400\r\n"), &[]);
    let message = error.unwrap().to_string();
    assert!(message.starts_with("message starting with `HTTP/1.1 400\\r\\n` is not JSON: "), "{message}");
}

// Whoever connects may send it, before it has proven anything.
#[test]
fn deeply_nested_json_is_refused_without_stack_overflow() {
    for open in ["[", "{\"a\":"] {
        let body = open.repeat(MAX_FRAME / open.len());
        let (values, error) = read_all(&frame(body.as_bytes()), &[]);
        assert!(values.is_empty() && matches!(error, Some(FrameError::NotJson { .. })), "{error:?}");
    }
}

#[test]
fn hostile_input_is_quoted_only_in_part() {
    #[derive(Debug, serde::Deserialize)]
    enum Word {
        Known,
    }
    let body = serde_json::to_vec(&"\u{1b}]0;".repeat(10_000)).unwrap();
    let (mut from, mut reader) = (Pieces::new(&frame(&body), &[1 << 16]), FrameReader::new(1 << 20));
    let error = run(async {
        loop {
            tokio::select! { biased; read = reader.read::<_, Word>(&mut from) => return read, () = ready(()) => {} }
        }
    });
    let message = error.unwrap_err().to_string();
    assert!(message.len() < 2000 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn a_message_too_long_to_send_writes_nothing() {
    let (mut to, mut writer) = (Pieces::default(), FrameWriter::new(10));
    let error = run(writer.write(&mut to, "longer than ten bytes")).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { length: 23, max_length: 10 }), "{error:?}");
    assert!(to.bytes.is_empty());
}

fn message() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        (0_usize..20_000).prop_map(|length| Value::from("x".repeat(length))),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1_usize..16, 1_usize..40_000], 0..12)
}

proptest! {
    #[test]
    fn arbitrary_bytes_in_arbitrary_pieces_never_panic_or_fill_the_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..4096),
        sizes in sizes(),
    ) {
        read_all(&bytes, &sizes);
    }

    #[test]
    fn arbitrary_bodies_behind_true_and_false_lengths_never_panic_or_fill_the_memory(
        bodies in prop::collection::vec((0..=2 * MAX_FRAME as u32, prop::collection::vec(any::<u8>(), 0..2048)), 0..8),
        sizes in sizes(),
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|(length, body)| [&length.to_be_bytes()[..], body].concat()).collect();
        read_all(&bytes, &sizes);
    }

    #[test]
    fn arbitrary_messages_arrive_unchanged_however_often_both_sides_cancel(
        messages in prop::collection::vec(message(), 0..5),
        (write_sizes, read_sizes) in (sizes(), sizes()),
    ) {
        let (mut to, mut writer) = (Pieces::new(&[], &write_sizes), FrameWriter::new(1 << 20));
        run(async {
            for message in &messages {
                // Cancelled at its first await; the next write or the flush below sends the rest.
                tokio::select! {
                    biased;
                    written = writer.write(&mut to, message) => written.unwrap(),
                    () = ready(()) => {}
                }
            }
            loop {
                tokio::select! { biased; flushed = writer.flush(&mut to) => break flushed.unwrap(), () = ready(()) => {} }
            }
        });
        let bytes: Vec<u8> = to.bytes.into();
        prop_assume!(messages.iter().all(|message| message.to_string().len() <= MAX_FRAME));
        let (received, error) = read_all(&bytes, &read_sizes);
        prop_assert!(error.is_none(), "{:?}", error);
        prop_assert_eq!(received, messages);
    }
}

//! Messages on the pipe: a call or its reply with their common id, and the encoding of replies.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{Fault, Request};

/// Header of a request; the frame's payload is [`Request::take_bytes`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestMessage {
    /// Chosen by the caller, unique on this pipe.
    pub(crate) id: u64,
    pub(crate) request: Request,
}

/// Header of the response to the request with the same id; the frame's payload is the reply's bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResponseMessage {
    pub(crate) id: u64,
    /// The reply, or why there is none.
    pub(crate) result: Result<Box<RawValue>, Fault>,
}

impl ResponseMessage {
    /// Creates the header of a response, and its payload.
    pub(crate) fn new(id: u64, result: Result<EncodedReply, Fault>) -> (Self, Vec<u8>) {
        match result {
            Ok(EncodedReply { value, bytes }) => (Self { id, result: Ok(value) }, bytes),
            Err(fault) => (Self { id, result: Err(fault) }, Vec::new()),
        }
    }

    /// Returns the reply with the payload, or the fault.
    pub(crate) fn into_result(self, bytes: Vec<u8>) -> Result<EncodedReply, Fault> {
        self.result.map(|value| EncodedReply { value, bytes })
    }
}

/// A reply as it is sent. Only [`super::Call::reply`] and [`super::Call::decode_reply`] make and read one, so that it
/// is always the reply of its call. The value is JSON in the header of a frame, and the bytes (files, output) are its
/// payload.
#[derive(Debug)]
pub struct EncodedReply {
    value: Box<RawValue>,
    bytes: Vec<u8>,
}

/// A type of reply: a value in JSON, or that with raw bytes ([`WithBytes`]).
pub trait Reply: Sized {
    /// Encodes the reply.
    ///
    /// # Errors
    /// If it cannot be expressed in JSON.
    fn encode(self) -> serde_json::Result<EncodedReply>;

    /// Decodes a reply.
    ///
    /// # Errors
    /// If it is of another type.
    fn decode(reply: EncodedReply) -> serde_json::Result<Self>;
}

impl<T: Serialize + DeserializeOwned> Reply for T {
    fn encode(self) -> serde_json::Result<EncodedReply> {
        Ok(EncodedReply { value: to_raw_value(&self)?, bytes: Vec::new() })
    }

    fn decode(reply: EncodedReply) -> serde_json::Result<Self> {
        serde_json::from_str(reply.value.get())
    }
}

/// A reply with raw bytes beside its value.
#[derive(Debug, Clone, PartialEq)]
pub struct WithBytes<T> {
    pub value: T,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl<T: Serialize + DeserializeOwned> Reply for WithBytes<T> {
    fn encode(self) -> serde_json::Result<EncodedReply> {
        Ok(EncodedReply { bytes: self.bytes, ..self.value.encode()? })
    }

    fn decode(mut reply: EncodedReply) -> serde_json::Result<Self> {
        let bytes = std::mem::take(&mut reply.bytes);
        Ok(Self { value: T::decode(reply)?, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Call, call};
    use super::*;

    #[test]
    fn a_reply_survives_the_pipe_with_its_bytes() {
        let get = call::Get { path: "/f".to_owned(), offset: 0 };
        let chunk = WithBytes { value: 7, bytes: b"content".to_vec() };
        let (header, payload) = ResponseMessage::new(1, get.reply(chunk.clone()));
        let header: ResponseMessage = serde_json::from_slice(&serde_json::to_vec(&header).unwrap()).unwrap();
        assert_eq!(call::Get::decode_reply(header.into_result(payload).unwrap()).unwrap(), chunk);
    }

    #[test]
    fn a_fault_takes_the_place_of_the_reply() {
        let fault = Fault::NoSuchId { noun: "group".to_owned(), id: 7 };
        let (header, payload) = ResponseMessage::new(1, Err(fault.clone()));
        let header: ResponseMessage = serde_json::from_slice(&serde_json::to_vec(&header).unwrap()).unwrap();
        assert_eq!(header.into_result(payload).unwrap_err(), fault);
    }

    #[test]
    fn the_bytes_of_a_request_are_its_payload() {
        let put = call::Put { path: "/f".to_owned(), offset: 0, mode: 0o600, bytes: b"content".to_vec() };
        let mut message = RequestMessage { id: 1, request: put.into() };
        let payload = message.request.take_bytes();
        let json = serde_json::to_string(&message).unwrap();
        assert!(!json.contains("bytes"), "{json}");
        let mut message: RequestMessage = serde_json::from_str(&json).unwrap();
        message.request.set_bytes(payload);
        assert!(matches!(message.request, Request::Put(put) if put.bytes == b"content"));
    }

    #[test]
    fn a_reply_of_another_type_is_an_error() {
        let reply = call::Ping {}.reply(()).unwrap();
        assert!(call::Facts::decode_reply(reply).is_err());
    }
}

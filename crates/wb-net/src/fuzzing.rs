//! Entry points of fuzz targets: each takes bytes from outside, and panics if something that must hold does not.
//!
//! `scripts/fuzz` searches for inputs; those in `fuzz/corpus` run as ordinary tests, too.

use crate::control::{FrameReader, recognise_program};
use crate::engine::datagram_position;
use crate::engine::protocol::{EngineCommand, EngineEvent};
use crate::session::limits::SessionLimits;
use crate::transport::cookie::{LENGTH, SessionKey, claimed_link, resembles_cookie, session_id};
use wb_net_profile::mirror::{hosts, mirror};
use wb_net_profile::support::unsupported_features;
use wb_net_profile::{Variables, decode_text, parse};

/// Parses a profile. A valid one can be mirrored for each of its hosts, and is unchanged by serialization.
pub fn profile(input: &[u8]) {
    let Ok(text) = decode_text("profile.xml", input) else { return };
    let mut variables = Variables::new();
    variables.set("h", "127.0.0.1");
    let Ok(parsed) = parse("profile.xml", text, &variables) else { return };
    let profile = parsed.profile;
    let _ = unsupported_features(&profile);
    for host in hosts(&profile) {
        let other = mirror(&profile, &host, &|_| vec![1]);
        assert_eq!(other.groups.len(), profile.groups.len());
        for (own, mirrored) in profile.groups.iter().zip(&other.groups) {
            assert_eq!(own.flowops().count(), mirrored.flowops().count());
        }
    }
    let json = serde_json::to_string(&profile).expect("a profile can be serialized");
    let again = serde_json::from_str(&json).expect("and is valid");
    assert_eq!(profile, again);
}

/// Reads frames of the control connection, as both sides do after the handshake. Within its limits a server accepts an
/// assignment or refuses it.
pub fn control_frames(input: &[u8]) {
    const MAX_FRAME: usize = 1 << 16;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    runtime.block_on(async {
        let mut reader = FrameReader::new(MAX_FRAME);
        let mut from = input;
        while let Ok(Some(command)) = reader.read::<_, EngineCommand>(&mut from).await {
            if let EngineCommand::Prepare(assignment) = command {
                // Either answer is right; a panic is not.
                let _ = SessionLimits::default().check(&assignment);
            }
        }
        let (mut reader, mut from) = (FrameReader::new(MAX_FRAME), input);
        while let Ok(Some(_)) = reader.read::<_, EngineEvent>(&mut from).await {}
    });
}

/// Reads the first bytes of a connection, or a datagram, from an unknown sender. They belong to no session, as the
/// sender does not know a session's key.
pub fn first_bytes(input: &[u8]) {
    let _ = recognise_program(input);
    let _ = datagram_position(input);
    let is_cookie = resembles_cookie(input);
    let Some(bytes) = input.first_chunk::<LENGTH>() else { return };
    assert_eq!(session_id(bytes).is_some(), is_cookie);
    let _ = claimed_link(bytes);
    let key = SessionKey::generate().expect("random bytes");
    assert_eq!(key.open(bytes), None);
}

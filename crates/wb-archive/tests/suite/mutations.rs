//! Damaged archives never cause a panic and never write outside of the target.

use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use crate::support::{Workshop, compress, listing, sample_contents};

/// A change of some bytes.
#[derive(Debug, Clone)]
enum Mutation {
    Set(u8),
    Remove(usize),
    Repeat(usize),
    Insert(Vec<u8>),
    Truncate,
}

fn mutation() -> impl Strategy<Value = (prop::sample::Index, Mutation)> {
    let what = prop_oneof![
        4 => any::<u8>().prop_map(Mutation::Set),
        1 => (1usize..2000).prop_map(Mutation::Remove),
        1 => (1usize..2000).prop_map(Mutation::Repeat),
        1 => prop::sample::select(vec!["../x", "/tmp/x", "\0", "L", "2", "manifest.json", "run"])
            .prop_map(|text| Mutation::Insert(text.as_bytes().to_vec())),
        1 => Just(Mutation::Truncate),
    ];
    (any::<prop::sample::Index>(), what)
}

fn apply(bytes: &mut Vec<u8>, (index, mutation): &(prop::sample::Index, Mutation)) {
    if bytes.is_empty() {
        return;
    }
    let index = index.index(bytes.len());
    match mutation {
        Mutation::Set(byte) => bytes[index] = *byte,
        Mutation::Remove(length) => drop(bytes.drain(index..(index + length).min(bytes.len()))),
        Mutation::Repeat(length) => {
            let part = bytes[index..(index + length).min(bytes.len())].to_vec();
            bytes.splice(index..index, part);
        }
        // Overwritten rather than inserted, so that headers stay aligned.
        Mutation::Insert(text) => {
            let end = (index + text.len()).min(bytes.len());
            bytes[index..end].copy_from_slice(&text[..end - index]);
        }
        Mutation::Truncate => bytes.truncate(index),
    }
}

/// Makes the checksum of every header valid, as somebody would who modifies an archive.
fn repair_checksums(tar: &mut [u8]) {
    for block in tar.chunks_exact_mut(512) {
        if &block[257..262] == b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

/// Extracts an archive and checks that there is nothing but the target afterwards, and that only if it succeeds.
fn check(workshop: &Workshop, archive: &[u8]) {
    let result = workshop.unpack(archive);
    let all = listing(&workshop.path("box"));
    let is_below_target = |name: &String| name == "target" || name.starts_with("target/");
    assert!(all.keys().all(is_below_target), "{:?}", all.keys());
    assert_eq!(result.is_ok(), all.contains_key("target"), "{result:?}");
    assert!(!workshop.path("x").exists(), "something was written beside the box");
    if result.is_ok() {
        std::fs::remove_dir_all(workshop.path("box/target")).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn modified_members_are_extracted_below_the_target_or_not_at_all(mutations in prop::collection::vec(mutation(), 1..4)) {
        let workshop = Workshop::new();
        let mut tar = Vec::new();
        GzDecoder::new(&workshop.pack(&sample_contents())[..]).read_to_end(&mut tar).unwrap();
        mutations.iter().for_each(|mutation| apply(&mut tar, mutation));
        check(&workshop, &compress(&tar));
        repair_checksums(&mut tar);
        check(&workshop, &compress(&tar));
    }

    #[test]
    fn damaged_archives_are_extracted_below_the_target_or_not_at_all(mutations in prop::collection::vec(mutation(), 1..4)) {
        let workshop = Workshop::new();
        let mut archive = workshop.pack(&sample_contents());
        mutations.iter().for_each(|mutation| apply(&mut archive, mutation));
        check(&workshop, &archive);
    }
}

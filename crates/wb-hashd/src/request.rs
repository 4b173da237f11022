//! One request: read, sleep, touch, sleep, hash, sleep.

use std::io;
use std::thread;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha1::{Digest, Sha1};

use crate::anonymous_memory::{AnonymousMemory, Touch};
use crate::distribution::{ClampedNormal, chunk_at};
use crate::test_files::TestFiles;
use crate::window::{Stage, StageClock};
use crate::{HashdParams, PAGE};

/// SHA-1.
pub(crate) type RequestDigest = [u8; 20];

/// The parts of the footprint that requests use at the moment; the scales are amplitudes of addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Footprint {
    pub(crate) file_pages: u64,
    pub(crate) file_scale: f64,
    pub(crate) anon_scale: f64,
}

/// Distributions of everything that is drawn for a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestModel {
    params: HashdParams,
    /// Keyed by the seed; each request has its own stream of it.
    rng: ChaCha8Rng,
    file_size: ClampedNormal,
    anon_size: ClampedNormal,
    file_position: ClampedNormal,
    anon_position: ClampedNormal,
    sleep: ClampedNormal,
}

/// What is drawn before a request begins; its addresses are drawn on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RequestShape {
    file_chunks: u64,
    anon_chunks: u64,
    sleep: Duration,
}

impl RequestModel {
    pub(crate) fn new(params: &HashdParams, seed: u64) -> Self {
        let sizes = |mean: f64, deviation: f64| ClampedNormal::sizes(mean, deviation, PAGE as f64);
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            file_size: sizes(params.file_size_mean.0 as f64, params.file_size_stdev),
            anon_size: sizes(params.anon_size_mean(), params.anon_size_stdev),
            file_position: ClampedNormal::positions(params.file_addr_stdev),
            anon_position: ClampedNormal::positions(params.anon_addr_stdev),
            sleep: ClampedNormal::sizes(params.sleep_mean.seconds(), params.sleep_stdev, 0.0),
            params: params.clone(),
        }
    }

    pub(crate) fn params(&self) -> &HashdParams {
        &self.params
    }

    /// Random numbers that belong to the request of this number, whichever thread executes it.
    pub(crate) fn rng_of(&self, request: u64) -> ChaCha8Rng {
        let mut rng = self.rng.clone();
        rng.set_stream(request);
        rng
    }

    fn draw_shape(&self, rng: &mut ChaCha8Rng) -> RequestShape {
        let chunk = self.chunk_bytes() as f64;
        let mut chunks = |size: &ClampedNormal| (size.sample(rng) / chunk).ceil() as u64;
        let (file_chunks, anon_chunks) = (chunks(&self.file_size), chunks(&self.anon_size));
        // A ratio of zero means no anonymous memory, not the smallest size.
        let anon_chunks = if self.params.anon_size_ratio > 0.0 { anon_chunks } else { 0 };
        RequestShape { file_chunks, anon_chunks, sleep: Duration::from_secs_f64(self.sleep.sample(rng)) }
    }

    /// Bytes of a chunk, and of the buffer for [`RequestModel::execute`].
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.params.chunk_pages as usize * PAGE
    }

    /// `buffer` holds one chunk: a request does not keep what it has read, so that its memory is small beside the
    /// footprint. The digest covers the last chunk as often as the size requires, and a checksum of all pages.
    pub(crate) fn execute(
        &self,
        request: u64,
        (files, memory, footprint): (&TestFiles, &AnonymousMemory, Footprint),
        buffer: &mut [u8],
        clock: &mut StageClock,
    ) -> io::Result<RequestDigest> {
        clock.end(Stage::Sleep);
        let mut rng = self.rng_of(request);
        let shape = self.draw_shape(&mut rng);
        let chunk_pages = u64::from(self.params.chunk_pages);
        let mut checksum = 0u64;

        let pages = footprint.file_pages.max(1);
        let length = buffer.len().min(pages as usize * PAGE);
        for _ in 0..shape.file_chunks {
            let position = self.file_position.sample(&mut rng) * footprint.file_scale;
            let first = chunk_at(position, pages, chunk_pages);
            checksum = checksum.rotate_left(7) ^ files.read_chunk(first, &mut buffer[..length])?;
            if self.params.file_write_frac > 0.0 && rng.random_bool(self.params.file_write_frac) {
                files.rewrite_chunk(first, &mut buffer[..length])?;
            }
        }
        clock.end(Stage::Read);
        thread::sleep(shape.sleep / 3);
        clock.end(Stage::Sleep);

        let touch = if self.params.fake_cpu_load { Touch::FirstWord } else { Touch::Whole };
        for _ in 0..shape.anon_chunks {
            let position = self.anon_position.sample(&mut rng) * footprint.anon_scale;
            let is_write = rng.random_bool(self.params.anon_write_frac);
            let first = chunk_at(position, memory.pages(), chunk_pages);
            checksum = checksum.rotate_left(7) ^ memory.touch_chunk(first, is_write, touch, buffer);
        }
        clock.end(Stage::Touch);
        thread::sleep(shape.sleep / 3);
        clock.end(Stage::Sleep);

        let bytes = (shape.file_chunks + shape.anon_chunks) * buffer.len() as u64;
        let hashed = if self.params.fake_cpu_load { 0.0 } else { bytes as f64 * self.params.cpu_ratio };
        let digest = hash(buffer, hashed, checksum);
        if self.params.fake_cpu_load {
            thread::sleep(self.params.fake_hash_time(bytes));
        }
        clock.end(Stage::Hash);
        thread::sleep(shape.sleep / 3);
        Ok(digest)
    }
}

/// Hashes `buffer` as often as it takes for this number of bytes, and the checksum.
fn hash(buffer: &[u8], bytes: f64, checksum: u64) -> RequestDigest {
    let mut rest = bytes.round() as usize;
    let mut hasher = Sha1::new();
    while rest > 0 {
        let part = rest.min(buffer.len());
        hasher.update(&buffer[..part]);
        rest -= part;
    }
    hasher.update(checksum.to_ne_bytes());
    hasher.finalize().into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::sync::Arc;

    use wb_model::{Bytes, Nanos};

    use super::*;
    use crate::content::PageContent;
    use crate::window::WorkerCounters;
    use crate::work_folder::WorkFolder;

    fn small() -> HashdParams {
        HashdParams {
            file_size_mean: Bytes(64 << 10),
            chunk_pages: 2,
            sleep_mean: Nanos(0),
            anon_write_frac: 0.0,
            ..HashdParams::default()
        }
    }

    /// The digests of the first requests.
    fn digests(params: &HashdParams, seed: u64, footprint: Footprint) -> Vec<RequestDigest> {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        let content = PageContent::new(0.0);
        let files = TestFiles::default().extend_to(1 << 20, &folder, content, &|| false).unwrap();
        let memory = AnonymousMemory::reserve(1 << 20, content).unwrap();
        memory.resize(1 << 20);
        let model = RequestModel::new(params, seed);
        let (mut buffer, counters) = (vec![0; model.chunk_bytes()], Arc::new(WorkerCounters::new()));
        let mut clock = StageClock::new(counters.clone());
        let digests = (0..20)
            .map(|request| model.execute(request, (&files, &memory, footprint), &mut buffer, &mut clock).unwrap())
            .collect();
        assert!(counters.cpu_nanos(Stage::Hash) > 0);
        digests
    }

    const WHOLE: Footprint = Footprint { file_pages: 256, file_scale: 1.0, anon_scale: 1.0 };

    #[test]
    fn same_seed_draws_the_same_requests() {
        let first = digests(&small(), 1, WHOLE);
        assert_eq!(digests(&small(), 1, WHOLE), first);
        assert_ne!(digests(&small(), 2, WHOLE), first);
        assert!(first.iter().all(|digest| first.iter().filter(|other| *other == digest).count() == 1));
    }

    #[test]
    fn shape_of_a_request_depends_on_its_number_alone() {
        let model = RequestModel::new(&HashdParams::default(), 5);
        let shape = |request| model.draw_shape(&mut model.rng_of(request));
        assert_eq!(shape(17), shape(17));
        assert_ne!(shape(17), shape(18));
        let mean = |of: fn(RequestShape) -> f64| (0..2000).map(|request| of(shape(request))).sum::<f64>() / 2000.0;
        // Half a chunk is added by rounding up.
        let chunk = 25.0 * 4096.0;
        assert!((mean(|shape| shape.file_chunks as f64) / (1_258_291.0 / chunk + 0.5) - 1.0).abs() < 0.05);
        assert!((mean(|shape| shape.anon_chunks as f64) / (2.3 * 1_258_291.0 / chunk + 0.5) - 1.0).abs() < 0.05);
        assert!((mean(|shape| shape.sleep.as_secs_f64()) / 0.02 - 1.0).abs() < 0.05);
    }

    #[test]
    fn faked_load_hashes_nothing_and_sleeps_in_proportion_to_the_size() {
        let params = HashdParams { fake_cpu_load: true, ..HashdParams::default() };
        let bytes = (params.file_size_mean.0 as f64 * 3.3) as u64;
        for (factor, expected) in [(1, 0.015), (3, 0.045)] {
            let time = params.fake_hash_time(factor * bytes).as_secs_f64();
            assert!((time - expected).abs() < 1e-6, "{time}");
        }
        let first = digests(&HashdParams { fake_cpu_load: true, ..small() }, 1, WHOLE);
        assert!(first.iter().all(|digest| first.iter().filter(|other| *other == digest).count() == 1));
    }

    #[test]
    fn footprint_smaller_than_a_chunk_is_read_as_far_as_it_goes() {
        let tiny = Footprint { file_pages: 1, file_scale: 0.0, anon_scale: 0.0 };
        assert_eq!(digests(&HashdParams { chunk_pages: 8, ..small() }, 1, tiny).len(), 20);
    }
}

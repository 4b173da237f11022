//! A cache of its own for each test, and workers that use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;
use wb_agent::Worker;
use wb_model::Nanos;
use wb_profile::image::cache::{self, CachedImage};
use wb_profile::image::request::ImageProgress;
use wb_profile::image::{BaseImage, ImageError, ImageFailure, ImageOptions, ImageSpec, prepare};

/// A test's world.
pub(crate) struct Lab {
    folder: TempDir,
    stall: Nanos,
    told: Mutex<Vec<String>>,
}

impl Lab {
    /// One in which no server is given up, however busy the machine is.
    pub(crate) fn new() -> Self {
        Self::with_stall(Nanos(60_000_000_000))
    }

    /// One in which servers are given up after this time.
    pub(crate) fn with_stall(stall: Nanos) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), stall, told: Mutex::default() }
    }

    /// A path beside the cache.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// This machine, through the real program.
    pub(crate) async fn worker(&self) -> Worker {
        Worker::local(Path::new(env!("CARGO_BIN_EXE_weighbridge"))).await.unwrap()
    }

    fn cache(&self) -> String {
        self.path("cache")
    }

    pub(crate) async fn ready(&self, worker: &Worker, image: &ImageSpec) -> Result<BaseImage, ImageError> {
        let options = ImageOptions { cache: Some(self.cache()), stall: self.stall };
        prepare(worker, image, &options, &|progress: &ImageProgress| {
            self.told.lock().unwrap().push(progress.to_string())
        })
        .await
    }

    /// Why an image cannot be had.
    pub(crate) async fn fails(&self, worker: &Worker, image: &ImageSpec) -> ImageFailure {
        match self.ready(worker, image).await {
            Err(ImageError::Failed { failure, .. }) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// All that was told of progress.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    pub(crate) async fn cached(&self, worker: &Worker) -> Vec<CachedImage> {
        cache::list(worker, Some(&self.cache())).await.unwrap()
    }

    /// Removes an entry; why it was left, if it was.
    pub(crate) async fn remove(&self, worker: &Worker, name: &str) -> Vec<String> {
        let left = cache::remove(worker, vec![name.to_owned()], Some(&self.cache())).await.unwrap();
        left.into_iter().map(|left| left.why).collect()
    }

    /// All that is in the cache, and below it, by path.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::from(self.cache())];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
                found.push(path.display().to_string());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found
    }
}

pub(crate) fn run<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
}

/// Whether images can be looked at here; said aloud where not.
pub(crate) fn has_qemu_img() -> bool {
    has("qemu-img")
}

/// Whether a program is there; said aloud where not.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        println!("SKIPPED: images, for there is no {program} here");
    }
    there
}

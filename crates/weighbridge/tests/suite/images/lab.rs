//! Test environment with its own image cache, and workers that use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;
use wb_agent::Worker;
use wb_model::Nanos;
use wb_profile::image::cache::{self, CachedImage};
use wb_profile::image::request::ImageProgress;
use wb_profile::image::{BaseImage, ImageError, ImageFailure, ImageOptions, ImageSpec, prepare};

/// A test environment with an image cache.
pub(crate) struct Lab {
    folder: TempDir,
    stall: Nanos,
    messages: Mutex<Vec<String>>,
}

impl Lab {
    /// A lab with a long stall timeout, which a busy machine does not exceed; `None`, with a message, if images cannot be
    /// inspected here.
    pub(crate) fn new() -> Option<Self> {
        Self::with_stall(Nanos(60_000_000_000))
    }

    /// A lab in which stalled servers time out after this time.
    pub(crate) fn with_stall(stall: Nanos) -> Option<Self> {
        has("qemu-img").then(|| Self { folder: tempfile::tempdir().unwrap(), stall, messages: Mutex::default() })
    }

    /// A path beside the cache.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Starts a worker on this machine with the real program.
    pub(crate) async fn worker(&self) -> Worker {
        Worker::local(Path::new(env!("CARGO_BIN_EXE_weighbridge-agent"))).await.unwrap()
    }

    /// Runs a future with a worker, which is closed afterwards.
    pub(crate) fn run<T>(&self, test: impl AsyncFnOnce(&Worker) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let worker = self.worker().await;
            let result = test(&worker).await;
            worker.close().await.unwrap();
            result
        })
    }

    fn cache(&self) -> String {
        self.path("cache")
    }

    pub(crate) async fn ready(&self, worker: &Worker, image: &ImageSpec) -> Result<BaseImage, ImageError> {
        let options = ImageOptions { cache: Some(self.cache()), stall: self.stall };
        prepare(worker, image, &options, &|progress: &ImageProgress| {
            self.messages.lock().unwrap().push(progress.to_string())
        })
        .await
    }

    /// The failure of getting an image.
    pub(crate) async fn fails(&self, worker: &Worker, image: &ImageSpec) -> ImageFailure {
        match self.ready(worker, image).await {
            Err(ImageError::Failed { failure, .. }) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// All progress messages.
    pub(crate) fn progress_messages(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }

    pub(crate) async fn cached(&self, worker: &Worker) -> Vec<CachedImage> {
        cache::list(worker, Some(&self.cache())).await.unwrap()
    }

    /// Removes an entry; returns the reasons if it could not be removed.
    pub(crate) async fn remove(&self, worker: &Worker, name: &str) -> Vec<String> {
        let left = cache::remove(worker, vec![name.to_owned()], Some(&self.cache())).await.unwrap();
        left.into_iter().map(|left| left.why).collect()
    }

    /// The paths of all files and folders in the cache.
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

/// Whether a program is available; prints a message if not.
pub(crate) fn has(program: &str) -> bool {
    let is_available =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_available {
        wb_test_skip::skip!("images: no program {program}");
    }
    is_available
}

//! Prepares an image: takes it from the store, or fetches or builds it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wb_model::Sha256;

use crate::image::catalog::{self, CatalogImage};
use crate::image::checksums::{self, HashKind};
use crate::image::{BaseImage, CatalogName, GuestBoot, ImageFailure, ImageFormat, ImageSpec, LocalImage, RemoteImage};

use super::fetch::{ExpectedFile, Fetcher};
use super::store::{EntryLock, ImageStore, make_folder, remove_all};
use super::{ProgressWriter, debian, tools};

/// File name of an image in its entry, the same for all formats.
const DISK: &str = "disk.img";
const SHORT_HASH_LENGTH: usize = 16;

/// Returns an image from the store, creating it if it is missing or incomplete.
pub(super) fn prepare(
    folder: &ImageStore,
    image: &ImageSpec,
    stall: Duration,
    writer: &mut ProgressWriter,
) -> Result<BaseImage, ImageFailure> {
    let name = entry_name(image);
    let lock = folder.lock(&name, writer)?;
    if let Some(base) = folder.mark_used(&name, &lock)? {
        return Ok(base);
    }
    let mut builder = EntryBuilder { folder, name: &name, lock: &lock, stall, teller: writer };
    match image {
        ImageSpec::Named(named) => builder.named(named),
        ImageSpec::Remote(remote) => {
            let expected = ExpectedFile { url: &remote.url, kind: HashKind::Sha256, digits: &remote.sha256 };
            builder.fetch(&remote.url, &expected)
        }
        ImageSpec::File(file) => builder.file(file),
        ImageSpec::Built(built) => {
            let part = builder.empty_part()?;
            match debian::build(&part, DISK, built, builder.teller) {
                Ok(base) => builder.finish(base),
                // A partial build cannot be resumed.
                Err(failure) => remove_all(&part).and(Err(failure)),
            }
        }
    }
}

/// Checks that an image is available: complete in the store, or its file, its server or its build tools exist.
pub(super) fn check(folder: &ImageStore, image: &ImageSpec, stall: Duration) -> Result<(), ImageFailure> {
    if folder.complete_entry(&entry_name(image)).is_some() {
        return Ok(());
    }
    match image {
        ImageSpec::Named(named) => {
            tools::find(&tools::QEMU_IMG)?;
            let CatalogImage { url, list, kind } = lookup(named)?;
            expected_hash(&Fetcher::new(stall).text(&list)?, &url, list, kind).map(drop)
        }
        ImageSpec::Remote(remote) => {
            tools::find(&tools::QEMU_IMG)?;
            Fetcher::new(stall).check_available(&remote.url)
        }
        ImageSpec::File(file) => {
            require_files(file)?;
            tools::format(Path::new(&file.file)).map(drop)
        }
        ImageSpec::Built(_) => debian::require_tools().map(drop),
    }
}

/// The catalog's image for this machine's architecture.
fn lookup(CatalogName { name }: &CatalogName) -> Result<CatalogImage, ImageFailure> {
    let architecture = std::env::consts::ARCH;
    let unknown = || ImageFailure::Architecture { image: name.clone(), architecture: architecture.to_owned() };
    catalog::find(name, architecture).ok_or_else(unknown)
}

/// The expected hash of an image from its server's list.
fn expected_hash(text: &str, url: &str, list: String, kind: HashKind) -> Result<String, ImageFailure> {
    let file = url.rsplit('/').next().unwrap_or_default();
    checksums::find_hash(text, kind, file).ok_or_else(|| ImageFailure::NotListed {
        url: list,
        kind,
        file: file.to_owned(),
    })
}

fn require_files(image: &LocalImage) -> Result<(), ImageFailure> {
    let paths = [Some(&image.file), image.kernel.as_ref(), image.initrd.as_ref()];
    match paths.into_iter().flatten().find(|path| !Path::new(path).is_file()) {
        Some(missing) => Err(ImageFailure::Missing { path: missing.clone() }),
        None => Ok(()),
    }
}

fn entry_name(image: &ImageSpec) -> String {
    let short = |text: &str| Sha256::digest(text.as_bytes()).as_str()[..SHORT_HASH_LENGTH].to_owned();
    let architecture = std::env::consts::ARCH;
    match image {
        ImageSpec::Named(CatalogName { name }) => format!("{name}.{architecture}"),
        ImageSpec::Remote(RemoteImage { sha256, .. }) => format!("fetched-{}", &sha256[..SHORT_HASH_LENGTH]),
        ImageSpec::File(file) => {
            format!("file-{}", short(&serde_json::to_string(file).expect("plain data has a JSON form")))
        }
        ImageSpec::Built(built) => {
            let spec = serde_json::to_string(built).expect("plain data has a JSON form");
            format!("built-{}-{}.{architecture}", built.built, short(&format!("{spec}{}", debian::recipe())))
        }
    }
}

struct EntryBuilder<'a, 'b> {
    folder: &'a ImageStore,
    name: &'a str,
    lock: &'a EntryLock,
    stall: Duration,
    teller: &'a mut ProgressWriter<'b>,
}

impl EntryBuilder<'_, '_> {
    fn named(&mut self, named: &CatalogName) -> Result<BaseImage, ImageFailure> {
        let CatalogImage { url, list, kind } = lookup(named)?;
        self.teller.report_step(format!("fetching {list}"));
        let digits = expected_hash(&Fetcher::new(self.stall).text(&list)?, &url, list, kind)?;
        self.fetch(&named.name, &ExpectedFile { url: &url, kind, digits: &digits })
    }

    /// Downloads into the partial entry, resuming an earlier download of the same file.
    fn fetch(&mut self, name: &str, expected: &ExpectedFile) -> Result<BaseImage, ImageFailure> {
        // Check for it before the download, not after.
        tools::find(&tools::QEMU_IMG)?;
        let part = self.folder.partial_path(self.name);
        make_folder(&part)?;
        let file = part.join(format!("{}.download", &expected.digits[..SHORT_HASH_LENGTH]));
        remove_all_but(&part, &file)?;
        let sha256 = Fetcher::new(self.stall).file(expected, &file, self.teller)?;
        let format = tools::format(&file)?;
        let disk = part.join(DISK);
        fs::rename(&file, &disk).map_err(|error| ImageFailure::file(&disk, &error))?;
        make_readable(&disk)?;
        self.finish(BaseImage { name: name.to_owned(), path: DISK.to_owned(), format, sha256, boot: GuestBoot::Disk })
    }

    fn file(&mut self, requested: &LocalImage) -> Result<BaseImage, ImageFailure> {
        require_files(requested)?;
        let path = Path::new(&requested.file);
        let format = tools::format(path)?;
        self.teller.report_step(format!("hashing {}", requested.file));
        let sha256 = File::open(path).and_then(Sha256::of_reader).map_err(|error| ImageFailure::file(path, &error))?;
        let boot = match (&requested.kernel, &requested.initrd, &requested.arguments) {
            (Some(kernel), Some(initrd), arguments) => GuestBoot::Kernel {
                kernel: kernel.clone(),
                initrd: initrd.clone(),
                arguments: arguments.clone().unwrap_or_default(),
            },
            _ => GuestBoot::Disk,
        };
        self.empty_part()?;
        let (name, path) = (requested.file.clone(), requested.file.clone());
        self.finish(BaseImage { name, path, format, sha256: sha256.as_str().to_owned(), boot })
    }

    fn empty_part(&self) -> Result<PathBuf, ImageFailure> {
        let part = self.folder.partial_path(self.name);
        remove_all(&part)?;
        make_folder(&part)?;
        Ok(part)
    }

    fn finish(&self, base: BaseImage) -> Result<BaseImage, ImageFailure> {
        self.folder.finish(self.name, base, self.lock)
    }
}

/// Makes a file readable for all users, because guests run as another one.
pub(super) fn make_readable(path: &Path) -> Result<(), ImageFailure> {
    fs::set_permissions(path, Permissions::from_mode(0o644)).map_err(|error| ImageFailure::file(path, &error))
}

/// Removes all other files in a folder, such as partial downloads of an earlier version.
fn remove_all_but(folder: &Path, retained: &Path) -> Result<(), ImageFailure> {
    let entries = fs::read_dir(folder).map_err(|error| ImageFailure::file(folder, &error))?;
    entries.flatten().map(|entry| entry.path()).filter(|path| path != retained).try_for_each(|path| remove_all(&path))
}

/// The SHA-256 and the format of an image that was built here; makes it readable.
pub(super) fn hash_image(disk: &Path, format: ImageFormat) -> Result<(String, ImageFormat), ImageFailure> {
    make_readable(disk)?;
    let sha256 = File::open(disk).and_then(Sha256::of_reader).map_err(|error| ImageFailure::file(disk, &error))?;
    Ok((sha256.as_str().to_owned(), format))
}

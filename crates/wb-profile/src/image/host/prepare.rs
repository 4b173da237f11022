//! Has an image, from the folder or anew.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wb_model::Sha256;

use crate::image::catalogue::{self, CatalogueImage};
use crate::image::checksums::{self, HashKind};
use crate::image::{
    BaseImage, CatalogueName, GuestBoot, ImageFailure, ImageFormat, ImageSpec, LocalImage, RemoteImage,
};

use super::fetch::{ExpectedFile, Fetcher};
use super::store::{EntryLock, ImageStore, make_folder, remove_all};
use super::{ProgressWriter, debian, tools};

/// What an image is called in the folder of its entry; guests' overlays need not know what it is.
const DISK: &str = "disk.img";
/// What part of a hash names something.
const SHORT_HASH_LENGTH: usize = 16;

/// The image, made if it is not there whole.
pub(super) fn prepare(
    folder: &ImageStore,
    image: &ImageSpec,
    stall: Duration,
    teller: &mut ProgressWriter,
) -> Result<BaseImage, ImageFailure> {
    let name = entry_name(image);
    let lock = folder.lock(&name, teller)?;
    if let Some(base) = folder.touch(&name, &lock)? {
        return Ok(base);
    }
    let mut making = EntryBuilder { folder, name: &name, lock: &lock, stall, teller };
    match image {
        ImageSpec::Named(named) => making.named(named),
        ImageSpec::Remote(remote) => {
            let wanted = ExpectedFile { url: &remote.url, kind: HashKind::Sha256, digits: &remote.sha256 };
            making.fetch(&remote.url, &wanted)
        }
        ImageSpec::File(file) => making.file(file),
        ImageSpec::Built(built) => {
            let part = making.empty_part()?;
            match debian::build(&part, DISK, built, making.teller) {
                Ok(base) => making.finish(base),
                // What is half unpacked cannot be gone on with.
                Err(failure) => remove_all(&part).and(Err(failure)),
            }
        }
    }
}

/// Whether the image can be had: it is in the folder whole, or its file, its server or what builds it is there.
pub(super) fn check(folder: &ImageStore, image: &ImageSpec, stall: Duration) -> Result<(), ImageFailure> {
    if folder.complete_entry(&entry_name(image)).is_some() {
        return Ok(());
    }
    match image {
        ImageSpec::Named(named) => {
            tools::find(&tools::QEMU_IMG)?;
            let CatalogueImage { url, list, kind } = lookup(named)?;
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

/// Where the catalogue has an image for this machine.
fn lookup(CatalogueName { name }: &CatalogueName) -> Result<CatalogueImage, ImageFailure> {
    let architecture = std::env::consts::ARCH;
    let unknown = || ImageFailure::Architecture { image: name.clone(), architecture: architecture.to_owned() };
    catalogue::find(name, architecture).ok_or_else(unknown)
}

/// The hash of an image in the list that its server has.
fn expected_hash(text: &str, url: &str, list: String, kind: HashKind) -> Result<String, ImageFailure> {
    let file = url.rsplit('/').next().unwrap_or_default();
    checksums::find_hash(text, kind, file).ok_or_else(|| ImageFailure::NotListed {
        url: list,
        kind,
        file: file.to_owned(),
    })
}

fn require_files(image: &LocalImage) -> Result<(), ImageFailure> {
    let given = [Some(&image.file), image.kernel.as_ref(), image.initrd.as_ref()];
    match given.into_iter().flatten().find(|path| !Path::new(path).is_file()) {
        Some(missing) => Err(ImageFailure::Missing { path: missing.clone() }),
        None => Ok(()),
    }
}

/// What an image is called in the folder: the same for the same, and for nothing else.
fn entry_name(image: &ImageSpec) -> String {
    let short = |text: &str| Sha256::of(text.as_bytes()).as_str()[..SHORT_HASH_LENGTH].to_owned();
    let architecture = std::env::consts::ARCH;
    match image {
        ImageSpec::Named(CatalogueName { name }) => format!("{name}.{architecture}"),
        ImageSpec::Remote(RemoteImage { sha256, .. }) => format!("fetched-{}", &sha256[..SHORT_HASH_LENGTH]),
        ImageSpec::File(file) => format!("file-{}", short(&serde_json::to_string(file).unwrap_or_default())),
        ImageSpec::Built(built) => {
            let what = serde_json::to_string(built).unwrap_or_default();
            format!("built-{}-{}.{architecture}", built.built, short(&format!("{what}{}", debian::recipe())))
        }
    }
}

/// An entry that is being made.
struct EntryBuilder<'a, 'b> {
    folder: &'a ImageStore,
    name: &'a str,
    lock: &'a EntryLock,
    stall: Duration,
    teller: &'a mut ProgressWriter<'b>,
}

impl EntryBuilder<'_, '_> {
    fn named(&mut self, named: &CatalogueName) -> Result<BaseImage, ImageFailure> {
        let CatalogueImage { url, list, kind } = lookup(named)?;
        self.teller.report_step(format!("fetching {list}"));
        let digits = expected_hash(&Fetcher::new(self.stall).text(&list)?, &url, list, kind)?;
        self.fetch(&named.name, &ExpectedFile { url: &url, kind, digits: &digits })
    }

    /// Fetches into the part, where what came before of the same is gone on with.
    fn fetch(&mut self, name: &str, wanted: &ExpectedFile) -> Result<BaseImage, ImageFailure> {
        // Before it is fetched, not after.
        tools::find(&tools::QEMU_IMG)?;
        let part = self.folder.partial_path(self.name);
        make_folder(&part)?;
        let file = part.join(format!("{}.download", &wanted.digits[..SHORT_HASH_LENGTH]));
        remove_all_but(&part, &file)?;
        let sha256 = Fetcher::new(self.stall).file(wanted, &file, self.teller)?;
        let format = tools::format(&file)?;
        let disk = part.join(DISK);
        fs::rename(&file, &disk).map_err(|error| ImageFailure::file(&disk, &error))?;
        make_readable(&disk)?;
        self.finish(BaseImage { name: name.to_owned(), path: DISK.to_owned(), format, sha256, boot: GuestBoot::Disk })
    }

    /// Remembers the hash of a file of the user's.
    fn file(&mut self, asked: &LocalImage) -> Result<BaseImage, ImageFailure> {
        require_files(asked)?;
        let path = Path::new(&asked.file);
        let format = tools::format(path)?;
        self.teller.report_step(format!("taking the hash of {}", asked.file));
        let sha256 = File::open(path).and_then(Sha256::of_reader).map_err(|error| ImageFailure::file(path, &error))?;
        let boot = match (&asked.kernel, &asked.initrd, &asked.arguments) {
            (Some(kernel), Some(initrd), arguments) => GuestBoot::Kernel {
                kernel: kernel.clone(),
                initrd: initrd.clone(),
                arguments: arguments.clone().unwrap_or_default(),
            },
            _ => GuestBoot::Disk,
        };
        self.empty_part()?;
        let (name, path) = (asked.file.clone(), asked.file.clone());
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

/// Lets everybody read a file: guests run as another user.
pub(super) fn make_readable(path: &Path) -> Result<(), ImageFailure> {
    fs::set_permissions(path, Permissions::from_mode(0o644)).map_err(|error| ImageFailure::file(path, &error))
}

/// Removes what else is in a folder: parts of what the image was before.
fn remove_all_but(folder: &Path, but: &Path) -> Result<(), ImageFailure> {
    let entries = fs::read_dir(folder).map_err(|error| ImageFailure::file(folder, &error))?;
    entries.flatten().map(|entry| entry.path()).filter(|path| path != but).try_for_each(|path| remove_all(&path))
}

/// The SHA-256 and the format of an image that was made here.
pub(super) fn hash_image(disk: &Path, format: ImageFormat) -> Result<(String, ImageFormat), ImageFailure> {
    make_readable(disk)?;
    let sha256 = File::open(disk).and_then(Sha256::of_reader).map_err(|error| ImageFailure::file(disk, &error))?;
    Ok((sha256.as_str().to_owned(), format))
}

//! Has an image, from the folder or anew.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wb_model::Sha256;

use crate::image::catalogue::{self, Listed};
use crate::image::checksums::{self, Kind};
use crate::image::{Base, Boot, Failure, Format, Image, LocalFile, Named, Remote};

use super::fetch::{Fetcher, Wanted};
use super::folder::{Folder, Lock, make_folder, remove_all};
use super::{Teller, debian, tools};

/// What an image is called in the folder of its entry; guests' overlays need not know what it is.
const DISK: &str = "disk.img";
/// What part of a hash names something.
const SHORT: usize = 16;

/// The image, made if it is not there whole.
pub(super) fn ready(folder: &Folder, image: &Image, stall: Duration, teller: &mut Teller) -> Result<Base, Failure> {
    let name = entry_name(image);
    let lock = folder.lock(&name, teller)?;
    if let Some(base) = folder.use_it(&name, &lock)? {
        return Ok(base);
    }
    let mut making = Making { folder, name: &name, lock: &lock, stall, teller };
    match image {
        Image::Named(named) => making.named(named),
        Image::Remote(remote) => {
            let wanted = Wanted { url: &remote.url, kind: Kind::Sha256, digits: &remote.sha256 };
            making.fetched(&remote.url, &wanted)
        }
        Image::File(file) => making.file(file),
        Image::Built(built) => {
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
pub(super) fn check(folder: &Folder, image: &Image, stall: Duration) -> Result<(), Failure> {
    if folder.whole(&entry_name(image)).is_some() {
        return Ok(());
    }
    match image {
        Image::Named(named) => {
            tools::find(&tools::QEMU_IMG)?;
            let Listed { url, list, kind } = listed(named)?;
            digits(&Fetcher::new(stall).text(&list)?, &url, list, kind).map(drop)
        }
        Image::Remote(remote) => {
            tools::find(&tools::QEMU_IMG)?;
            Fetcher::new(stall).answers(&remote.url)
        }
        Image::File(file) => {
            require_files(file)?;
            tools::format(Path::new(&file.file)).map(drop)
        }
        Image::Built(_) => debian::require_tools().map(drop),
    }
}

/// Where the catalogue has an image for this machine.
fn listed(Named { name }: &Named) -> Result<Listed, Failure> {
    let architecture = std::env::consts::ARCH;
    let unknown = || Failure::Architecture { image: name.clone(), architecture: architecture.to_owned() };
    catalogue::find(name, architecture).ok_or_else(unknown)
}

/// The hash of an image in the list that its server has.
fn digits(text: &str, url: &str, list: String, kind: Kind) -> Result<String, Failure> {
    let file = url.rsplit('/').next().unwrap_or_default();
    checksums::find(text, kind, file).ok_or_else(|| Failure::NotListed { url: list, kind, file: file.to_owned() })
}

fn require_files(image: &LocalFile) -> Result<(), Failure> {
    let given = [Some(&image.file), image.kernel.as_ref(), image.initrd.as_ref()];
    match given.into_iter().flatten().find(|path| !Path::new(path).is_file()) {
        Some(missing) => Err(Failure::Missing { path: missing.clone() }),
        None => Ok(()),
    }
}

/// What an image is called in the folder: the same for the same, and for nothing else.
fn entry_name(image: &Image) -> String {
    let short = |text: &str| Sha256::of(text.as_bytes()).as_str()[..SHORT].to_owned();
    let architecture = std::env::consts::ARCH;
    match image {
        Image::Named(Named { name }) => format!("{name}.{architecture}"),
        Image::Remote(Remote { sha256, .. }) => format!("fetched-{}", &sha256[..SHORT]),
        Image::File(file) => format!("file-{}", short(&serde_json::to_string(file).unwrap_or_default())),
        Image::Built(built) => {
            let what = serde_json::to_string(built).unwrap_or_default();
            format!("built-{}-{}.{architecture}", built.built, short(&format!("{what}{}", debian::recipe())))
        }
    }
}

/// An entry that is being made.
struct Making<'a, 'b> {
    folder: &'a Folder,
    name: &'a str,
    lock: &'a Lock,
    stall: Duration,
    teller: &'a mut Teller<'b>,
}

impl Making<'_, '_> {
    fn named(&mut self, named: &Named) -> Result<Base, Failure> {
        let Listed { url, list, kind } = listed(named)?;
        self.teller.doing(format!("fetching {list}"));
        let digits = digits(&Fetcher::new(self.stall).text(&list)?, &url, list, kind)?;
        self.fetched(&named.name, &Wanted { url: &url, kind, digits: &digits })
    }

    /// Fetches into the part, where what came before of the same is gone on with.
    fn fetched(&mut self, name: &str, wanted: &Wanted) -> Result<Base, Failure> {
        // Before it is fetched, not after.
        tools::find(&tools::QEMU_IMG)?;
        let part = self.folder.part(self.name);
        make_folder(&part)?;
        let file = part.join(format!("{}.download", &wanted.digits[..SHORT]));
        remove_others(&part, &file)?;
        let sha256 = Fetcher::new(self.stall).file(wanted, &file, self.teller)?;
        let format = tools::format(&file)?;
        let disk = part.join(DISK);
        fs::rename(&file, &disk).map_err(|error| Failure::file(&disk, &error))?;
        readable(&disk)?;
        self.finish(Base { name: name.to_owned(), path: DISK.to_owned(), format, sha256, boot: Boot::Disk })
    }

    /// Remembers the hash of a file of the user's.
    fn file(&mut self, asked: &LocalFile) -> Result<Base, Failure> {
        require_files(asked)?;
        let path = Path::new(&asked.file);
        let format = tools::format(path)?;
        self.teller.doing(format!("taking the hash of {}", asked.file));
        let sha256 = File::open(path).and_then(Sha256::of_all).map_err(|error| Failure::file(path, &error))?;
        let boot = match (&asked.kernel, &asked.initrd, &asked.arguments) {
            (Some(kernel), Some(initrd), arguments) => Boot::Kernel {
                kernel: kernel.clone(),
                initrd: initrd.clone(),
                arguments: arguments.clone().unwrap_or_default(),
            },
            _ => Boot::Disk,
        };
        self.empty_part()?;
        let (name, path) = (asked.file.clone(), asked.file.clone());
        self.finish(Base { name, path, format, sha256: sha256.as_str().to_owned(), boot })
    }

    fn empty_part(&self) -> Result<PathBuf, Failure> {
        let part = self.folder.part(self.name);
        remove_all(&part)?;
        make_folder(&part)?;
        Ok(part)
    }

    fn finish(&self, base: Base) -> Result<Base, Failure> {
        self.folder.finish(self.name, base, self.lock)
    }
}

/// Lets everybody read a file: guests run as another user.
pub(super) fn readable(path: &Path) -> Result<(), Failure> {
    fs::set_permissions(path, Permissions::from_mode(0o644)).map_err(|error| Failure::file(path, &error))
}

/// Removes what else is in a folder: parts of what the image was before.
fn remove_others(folder: &Path, but: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::file(folder, &error))?;
    entries.flatten().map(|entry| entry.path()).filter(|path| path != but).try_for_each(|path| remove_all(&path))
}

/// The SHA-256 and the format of an image that was made here.
pub(super) fn made(disk: &Path, format: Format) -> Result<(String, Format), Failure> {
    readable(disk)?;
    let sha256 = File::open(disk).and_then(Sha256::of_all).map_err(|error| Failure::file(disk, &error))?;
    Ok((sha256.as_str().to_owned(), format))
}

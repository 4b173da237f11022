//! Starts a guest to try things in: `cargo run --release -p wb-test-vm --example guest -- base.json FOLDER`, where
//! `weighbridge profile image SPEC --json` has written the description of its image. Ends when its input does.

use std::{error::Error, ffi::OsString, fs, io, path::Path};

use wb_test_vm::{GuestConfig, GuestDisk, SshGuest};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [base, folder] = &arguments[..] else { return Err("expected the description of an image and a folder".into()) };
    let base = serde_json::from_slice(&fs::read(base)?)?;
    let disks = [GuestDisk { size_mib: 6144, iops: 2000, mib_per_second: 64 }];
    let config = GuestConfig { memory_mib: 896, disks: &disks, may_reboot: true, ..GuestConfig::default() };
    let guest = SshGuest::start(Path::new(folder), &base, &config)?;
    println!("ssh -F {} guest", guest.ssh_config().display());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

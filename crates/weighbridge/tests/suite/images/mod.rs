//! Images on a host, with the real program, a worker on this machine, and a misbehaving server.

mod built;
mod lab;
mod secure;
mod server;

use std::fs;
use std::process::Command;

use wb_model::{Bytes, Nanos, Sha256};
use wb_profile::image::{GuestBoot, ImageFailure, ImageFormat, ImageSpec, RemoteImage};

use lab::Lab;
use server::{Behaviour, Server};

/// Stall timeout; long enough to transfer half a megabyte on a busy machine.
const SOON: Nanos = Nanos(3_000_000_000);

/// The served content: a raw image.
fn content() -> Vec<u8> {
    (0..2_000_000_u32)
        .flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 24).to_le_bytes().into_iter().take(1))
        .collect()
}

/// The image with that content on a server.
fn image(server: &Server) -> ImageSpec {
    ImageSpec::Remote(RemoteImage { url: server.url(), sha256: Sha256::digest(&content()).as_str().to_owned() })
}

#[test]
fn image_is_fetched_once_and_can_be_removed() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Normal]);
    lab.run(async |worker| {
        let base = lab.ready(worker, &image(&server)).await.unwrap();
        assert_eq!((base.format, &base.boot, &base.name), (ImageFormat::Raw, &GuestBoot::Disk, &server.url()));
        assert_eq!(fs::read(&base.path).unwrap(), content());
        assert_eq!(Sha256::digest(&content()).as_str(), base.sha256);
        assert!(
            lab.progress_messages().iter().any(|line| line.ends_with("of 1.91 MiB")),
            "{:?}",
            lab.progress_messages()
        );
        assert_eq!(lab.ready(worker, &image(&server)).await.unwrap(), base);
        assert_eq!(server.requested_offsets(), [0], "the second time nothing is requested");
        let entries = lab.cached(worker).await;
        assert_eq!((entries.len(), entries[0].base.as_ref(), entries[0].in_use.as_ref()), (1, Some(&base), None));
        assert!(entries[0].size >= Bytes(2_000_000) && entries[0].last_used >= entries[0].created);
        assert_eq!(lab.remove(worker, &entries[0].name).await, [""; 0]);
    });
    assert_eq!(lab.files(), [""; 0], "the folder is removed, too");
}

#[test]
fn broken_download_is_resumed() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Disconnect(300_000), Behaviour::Normal]);
    lab.run(async |worker| {
        let base = lab.ready(worker, &image(&server)).await.unwrap();
        assert_eq!(fs::read(&base.path).unwrap(), content());
    });
    assert_eq!(server.requested_offsets(), [0, 300_000]);
}

#[test]
fn stalled_download_times_out_and_is_resumed_next_time() {
    let Some(lab) = Lab::with_stall(SOON) else { return };
    let server = Server::new(&content(), &[Behaviour::Stall(500_000), Behaviour::Normal]);
    lab.run(async |worker| {
        let failure = lab.fails(worker, &image(&server)).await;
        let ImageFailure::Stalled { received: got, within, .. } = &failure else { panic!("{failure}") };
        assert_eq!((*got, *within), (Bytes(500_000), SOON));
        let partial = lab.cached(worker).await;
        assert!(partial[0].base.is_none() && partial[0].size >= Bytes(500_000), "{partial:?}");
        let base = lab.ready(worker, &image(&server)).await.unwrap();
        assert_eq!(fs::read(&base.path).unwrap(), content());
    });
    assert_eq!(server.requested_offsets(), [0, 500_000]);
}

#[test]
fn server_without_range_support_sends_the_whole_file() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Disconnect(300_000), Behaviour::NoRanges]);
    lab.run(async |worker| {
        assert_eq!(fs::read(lab.ready(worker, &image(&server)).await.unwrap().path).unwrap(), content());
    });
}

#[test]
fn download_with_a_wrong_hash_is_removed() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(b"<html>an error with status 200</html>", &[Behaviour::Normal]);
    lab.run(async |worker| {
        let failure = lab.fails(worker, &image(&server)).await;
        let ImageFailure::Hash { expected, found, .. } = &failure else { panic!("{failure}") };
        assert_eq!(expected, Sha256::digest(&content()).as_str());
        assert_ne!(expected, found);
        let left = lab.files();
        assert!(left.iter().all(|path| !path.contains("download") && !path.contains("disk")), "{left:?}");
    });
}

#[test]
fn download_failures_are_distinguished() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async |worker| {
        let gone = Server::new(&content(), &[Behaviour::Status(404)]);
        let failure = lab.fails(worker, &image(&gone)).await;
        assert!(matches!(failure, ImageFailure::Status { status: 404, .. }), "{failure}");
        let endless = Server::new(&content(), &[Behaviour::AnnouncedLength(1 << 60)]);
        let failure = lab.fails(worker, &image(&endless)).await;
        assert!(
            matches!(failure, ImageFailure::NoSpace { required: Bytes(needed), .. } if needed == 1 << 60),
            "{failure}"
        );
        // No server listens on this port.
        let nobody: ImageSpec = format!("http://127.0.0.1:1/disk.img#sha256={}", Sha256::digest(b"")).parse().unwrap();
        let failure = lab.fails(worker, &nobody).await;
        assert!(matches!(failure, ImageFailure::Unreachable { .. }), "{failure}");
    });
}

#[test]
fn two_controllers_fetch_the_same_image_once() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Normal]);
    lab.run(async |worker| {
        let second = lab.worker().await;
        let image = image(&server);
        let (one, other) = tokio::join!(lab.ready(worker, &image), lab.ready(&second, &image));
        assert_eq!(one.unwrap(), other.unwrap());
        second.close().await.unwrap();
    });
    assert_eq!(server.requested_offsets(), [0]);
    assert!(lab.files().iter().all(|path| !path.ends_with(".lock")), "{:?}", lab.files());
}

#[test]
fn image_changed_in_the_cache_is_fetched_again() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Normal]);
    lab.run(async |worker| {
        let base = lab.ready(worker, &image(&server)).await.unwrap();
        fs::write(&base.path, "something else").unwrap();
        assert_eq!(lab.ready(worker, &image(&server)).await.unwrap(), base);
        assert_eq!(fs::read(&base.path).unwrap(), content());
    });
    assert_eq!(server.requested_offsets(), [0, 0]);
}

#[test]
fn image_in_use_is_not_removed() {
    let Some(lab) = Lab::new() else { return };
    let server = Server::new(&content(), &[Behaviour::Normal]);
    lab.run(async |worker| {
        let base = lab.ready(worker, &image(&server)).await.unwrap();
        let user = fs::File::open(&base.path).unwrap();
        let entries = lab.cached(worker).await;
        // Of this process, or of one that another test starts: until its program is executed, it holds the same files.
        assert!(entries[0].in_use.as_ref().is_some_and(|user| user.contains("(process ")), "{entries:?}");
        let left = lab.remove(worker, &entries[0].name).await;
        assert!(left.len() == 1 && left[0].contains("(process "), "{left:?}");
        drop(user);
        let mut left = lab.remove(worker, &entries[0].name).await;
        for _ in 0..100 {
            if left.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            left = lab.remove(worker, &entries[0].name).await;
        }
        assert_eq!(left, [""; 0]);
    });
}

#[test]
fn image_file_of_the_host_is_used_in_place() {
    let Some(lab) = Lab::new() else { return };
    let (disk, overlay) = (lab.path("disk.qcow2"), lab.path("overlay.qcow2"));
    let create = |arguments: &[&str]| {
        let status = Command::new("qemu-img").args(["create", "-q", "-f", "qcow2"]).args(arguments).status();
        assert!(status.unwrap().success());
    };
    create(&[&disk, "16M"]);
    create(&["-b", &disk, "-F", "qcow2", &overlay]);
    lab.run(async |worker| {
        let base = lab.ready(worker, &disk.parse().unwrap()).await.unwrap();
        assert_eq!((base.path.as_str(), base.format), (disk.as_str(), ImageFormat::Qcow2));
        assert_eq!(base.sha256, Sha256::digest(&fs::read(&disk).unwrap()).as_str());
        create(&[&disk, "32M"]);
        let again = lab.ready(worker, &disk.parse().unwrap()).await.unwrap();
        assert_eq!(again.sha256, Sha256::digest(&fs::read(&disk).unwrap()).as_str());
        assert_ne!(again.sha256, base.sha256);

        let with_kernel = format!(r#"{{"file":"{disk}","kernel":"{disk}","initrd":"{disk}","arguments":"quiet"}}"#);
        let base = lab.ready(worker, &with_kernel.parse().unwrap()).await.unwrap();
        assert_eq!(
            base.boot,
            GuestBoot::Kernel { kernel: disk.clone(), initrd: disk.clone(), arguments: "quiet".to_owned() }
        );

        let failure = lab.fails(worker, &overlay.parse().unwrap()).await;
        assert!(matches!(failure, ImageFailure::Overlay { .. }), "{failure}");
        let failure = lab.fails(worker, &lab.path("nosuch").parse().unwrap()).await;
        assert!(matches!(failure, ImageFailure::Missing { .. }), "{failure}");
    });
}

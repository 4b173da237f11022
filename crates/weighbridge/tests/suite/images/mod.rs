//! Images on a host: through the real program, a real worker on this machine, and a server that does wrong what servers do.

mod built;
mod lab;
mod secure;
mod server;

use std::fs;
use std::process::Command;

use wb_model::{Bytes, Nanos, Sha256};
use wb_profile::image::{GuestBoot, ImageFailure, ImageFormat, ImageSpec, RemoteImage};

use lab::{Lab, has_qemu_img, run};
use server::{Manner, Server};

/// When a server is given up that says nothing; long enough to bring half a megabyte here, however busy.
const SOON: Nanos = Nanos(3_000_000_000);

/// What is served: no image of any format but raw.
fn content() -> Vec<u8> {
    (0..2_000_000_u32)
        .flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 24).to_le_bytes().into_iter().take(1))
        .collect()
}

/// That, as it is asked for.
fn image(server: &Server) -> ImageSpec {
    ImageSpec::Remote(RemoteImage { url: server.url(), sha256: Sha256::of(&content()).as_str().to_owned() })
}

#[test]
fn an_image_is_fetched_once_and_removed_when_it_is_asked_for() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let base = lab.ready(&worker, &image(&server)).await.unwrap();
        assert_eq!((base.format, &base.boot, &base.name), (ImageFormat::Raw, &GuestBoot::Disk, &server.url()));
        assert_eq!(fs::read(&base.path).unwrap(), content());
        assert_eq!(Sha256::of(&content()).as_str(), base.sha256);
        assert!(lab.told().iter().any(|line| line.ends_with("of 1.91 MiB")), "{:?}", lab.told());
        assert_eq!(lab.ready(&worker, &image(&server)).await.unwrap(), base);
        assert_eq!(server.asked(), [0], "the second time nobody is asked");
        let entries = lab.cached(&worker).await;
        assert_eq!((entries.len(), entries[0].base.as_ref(), entries[0].in_use.as_ref()), (1, Some(&base), None));
        assert!(entries[0].size >= Bytes(2_000_000) && entries[0].last_used >= entries[0].created);
        assert_eq!(lab.remove(&worker, &entries[0].name).await, [""; 0]);
        worker.close().await.unwrap();
    });
    assert_eq!(lab.files(), [""; 0], "not even the folder stays");
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Cuts(300_000), Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let base = lab.ready(&worker, &image(&server)).await.unwrap();
        assert_eq!(fs::read(&base.path).unwrap(), content());
        worker.close().await.unwrap();
    });
    assert_eq!(server.asked(), [0, 300_000]);
}

#[test]
fn a_server_that_stalls_is_given_up_and_the_next_time_goes_on_where_it_stopped() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::with_stall(SOON), Server::new(&content(), &[Manner::Stalls(500_000), Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let failure = lab.fails(&worker, &image(&server)).await;
        let ImageFailure::Stalled { got, within, .. } = &failure else { panic!("{failure}") };
        assert_eq!((*got, *within), (Bytes(500_000), SOON));
        let begun = lab.cached(&worker).await;
        assert!(begun[0].base.is_none() && begun[0].size >= Bytes(500_000), "{begun:?}");
        let base = lab.ready(&worker, &image(&server)).await.unwrap();
        assert_eq!(fs::read(&base.path).unwrap(), content());
        worker.close().await.unwrap();
    });
    assert_eq!(server.asked(), [0, 500_000]);
}

#[test]
fn a_server_without_parts_is_asked_for_all_of_it() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Cuts(300_000), Manner::KnowsNoParts]));
    run(async {
        let worker = lab.worker().await;
        assert_eq!(fs::read(lab.ready(&worker, &image(&server)).await.unwrap().path).unwrap(), content());
        worker.close().await.unwrap();
    });
}

#[test]
fn what_is_not_what_it_should_be_is_removed() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(b"<html>an error that is called none</html>", &[Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let failure = lab.fails(&worker, &image(&server)).await;
        let ImageFailure::Hash { expected, found, .. } = &failure else { panic!("{failure}") };
        assert_eq!(expected, Sha256::of(&content()).as_str());
        assert_ne!(expected, found);
        let left = lab.files();
        assert!(left.iter().all(|path| !path.contains("download") && !path.contains("disk")), "{left:?}");
        worker.close().await.unwrap();
    });
}

#[test]
fn what_a_server_does_not_give_is_told_as_what_it_is() {
    if !has_qemu_img() {
        return;
    }
    let lab = Lab::new();
    run(async {
        let worker = lab.worker().await;
        let gone = Server::new(&content(), &[Manner::Refuses(404)]);
        let failure = lab.fails(&worker, &image(&gone)).await;
        assert!(matches!(failure, ImageFailure::Status { status: 404, .. }), "{failure}");
        let endless = Server::new(&content(), &[Manner::Promises(1 << 60)]);
        let failure = lab.fails(&worker, &image(&endless)).await;
        assert!(
            matches!(failure, ImageFailure::NoSpace { needed: Bytes(needed), .. } if needed == 1 << 60),
            "{failure}"
        );
        // Nobody listens there.
        let nobody: ImageSpec = format!("http://127.0.0.1:1/disk.img#sha256={}", Sha256::of(b"")).parse().unwrap();
        let failure = lab.fails(&worker, &nobody).await;
        assert!(matches!(failure, ImageFailure::Unreachable { .. }), "{failure}");
        worker.close().await.unwrap();
    });
}

#[test]
fn two_controllers_that_want_the_same_fetch_it_once() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Well]));
    run(async {
        let workers = [lab.worker().await, lab.worker().await];
        let image = image(&server);
        let (one, other) = tokio::join!(lab.ready(&workers[0], &image), lab.ready(&workers[1], &image));
        assert_eq!(one.unwrap(), other.unwrap());
        for worker in workers {
            worker.close().await.unwrap();
        }
    });
    assert_eq!(server.asked(), [0]);
    assert!(lab.files().iter().all(|path| !path.ends_with(".lock")), "{:?}", lab.files());
}

#[test]
fn an_image_that_was_changed_in_the_cache_is_had_anew() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let base = lab.ready(&worker, &image(&server)).await.unwrap();
        fs::write(&base.path, "something else").unwrap();
        assert_eq!(lab.ready(&worker, &image(&server)).await.unwrap(), base);
        assert_eq!(fs::read(&base.path).unwrap(), content());
        worker.close().await.unwrap();
    });
    assert_eq!(server.asked(), [0, 0]);
}

#[test]
fn an_image_in_use_is_left() {
    if !has_qemu_img() {
        return;
    }
    let (lab, server) = (Lab::new(), Server::new(&content(), &[Manner::Well]));
    run(async {
        let worker = lab.worker().await;
        let base = lab.ready(&worker, &image(&server)).await.unwrap();
        let user = fs::File::open(&base.path).unwrap();
        let entries = lab.cached(&worker).await;
        let me = format!("(process {})", std::process::id());
        assert!(entries[0].in_use.as_ref().is_some_and(|user| user.ends_with(&me)), "{entries:?}");
        let left = lab.remove(&worker, &entries[0].name).await;
        assert!(left.len() == 1 && left[0].contains(&me), "{left:?}");
        drop(user);
        assert_eq!(lab.remove(&worker, &entries[0].name).await, [""; 0]);
        worker.close().await.unwrap();
    });
}

#[test]
fn a_file_of_the_host_is_used_where_it_lies() {
    if !has_qemu_img() {
        return;
    }
    let lab = Lab::new();
    let (disk, overlay) = (lab.path("disk.qcow2"), lab.path("overlay.qcow2"));
    let create = |arguments: &[&str]| {
        let made = Command::new("qemu-img").args(["create", "-q", "-f", "qcow2"]).args(arguments).status();
        assert!(made.unwrap().success());
    };
    create(&[&disk, "16M"]);
    create(&["-b", &disk, "-F", "qcow2", &overlay]);
    run(async {
        let worker = lab.worker().await;
        let base = lab.ready(&worker, &disk.parse().unwrap()).await.unwrap();
        assert_eq!((base.path.as_str(), base.format), (disk.as_str(), ImageFormat::Qcow2));
        assert_eq!(base.sha256, Sha256::of(&fs::read(&disk).unwrap()).as_str());
        create(&[&disk, "32M"]);
        let again = lab.ready(&worker, &disk.parse().unwrap()).await.unwrap();
        assert_eq!(again.sha256, Sha256::of(&fs::read(&disk).unwrap()).as_str());
        assert_ne!(again.sha256, base.sha256);

        let with_kernel = format!(r#"{{"file":"{disk}","kernel":"{disk}","initrd":"{disk}","arguments":"quiet"}}"#);
        let base = lab.ready(&worker, &with_kernel.parse().unwrap()).await.unwrap();
        assert_eq!(
            base.boot,
            GuestBoot::Kernel { kernel: disk.clone(), initrd: disk.clone(), arguments: "quiet".to_owned() }
        );

        let failure = lab.fails(&worker, &overlay.parse().unwrap()).await;
        assert!(matches!(failure, ImageFailure::Overlay { .. }), "{failure}");
        let failure = lab.fails(&worker, &lab.path("nosuch").parse().unwrap()).await;
        assert!(matches!(failure, ImageFailure::Missing { .. }), "{failure}");
        worker.close().await.unwrap();
    });
}

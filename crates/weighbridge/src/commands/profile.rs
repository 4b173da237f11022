//! `weighbridge profile`.

use wb_profile::image::order::Progress;
use wb_profile::image::{self, Image};
use wb_report::text::{Align, Table};
use wb_sys::undo::Undone;

use super::crew::{close, hosts, kernels_back, shelf};
use super::{print_text, runtime};
use crate::cli::profile::{ImageArgs, ProfileCommand, RevertArgs, ShelfArgs, ShowArgs};
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// Carries out what was asked of profiles.
pub(crate) fn profile(command: &ProfileCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        ProfileCommand::List(args) => list(args, console),
        ProfileCommand::Show(args) => show(args),
        ProfileCommand::Image(args) => image(args, console),
        ProfileCommand::Revert(args) => revert(args, console),
    }
}

fn list(args: &ShelfArgs, console: &Console) -> Result<Exit, Error> {
    let mut table = Table::new(&[("profile", Align::Left), ("", Align::Left)]);
    for named in shelf(&args.paths)?.all() {
        table.row(vec![named.name.to_string().into(), named.profile.summary.clone().into()]);
    }
    print_text(&table.draw(console.out))?;
    print_text(
        "\n`weighbridge profile show NAME` prints one; `weighbridge run --profiles NAME,… TEST` measures in them\n",
    )?;
    Ok(Exit::Fine)
}

fn show(args: &ShowArgs) -> Result<Exit, Error> {
    let shelf = shelf(&args.shelf.paths)?;
    let named = shelf.get(&args.name).map_err(wb_profile::BadUse::from)?;
    print_text(&named.profile.to_toml())?;
    Ok(Exit::Fine)
}

fn image(args: &ImageArgs, console: &Console) -> Result<Exit, Error> {
    let image = args.image.parse::<Image>().map_err(|error| Error::Usage {
        what: error.to_string(),
        help: "docs/images.md says what can be named".to_owned(),
    })?;
    runtime()?.block_on(async {
        let hosts = hosts(&args.hosts.clone().into(), console).await?;
        let mut well = hosts.crew.absent.is_empty();
        for member in &hosts.crew.members {
            let name = member.worker.name();
            let told = |progress: &Progress| {
                if !console.quiet {
                    tell!("`{name}`: {progress}");
                }
            };
            match image::ready(&member.worker, &image, &image::Options::default(), &told).await {
                Ok(base) => print_text(&format!("`{name}`: {} lies in {}\n", base.name, base.path))?,
                Err(error) => {
                    Error::from(error).warn();
                    well = false;
                }
            }
        }
        close(hosts).await?;
        Ok(if well { Exit::Fine } else { Exit::FellShort })
    })
}

/// Each agent puts back what one that was killed has left, at its start.
fn revert(args: &RevertArgs, console: &Console) -> Result<Exit, Error> {
    let flags = args.hosts.clone().into();
    runtime()?.block_on(async {
        let mut hosts = hosts(&flags, console).await?;
        let (mut well, mut is_held) = (hosts.crew.absent.is_empty(), false);
        for member in &hosts.crew.members {
            let name = member.worker.name();
            let left = member.worker.left_behind().await?;
            for one in &left.put_back {
                print_text(&format!("`{name}`: {}: {}\n", one.what, one.how))?;
                well &= !matches!(one.how, Undone::Left { .. });
            }
            if let Some(fault) = &left.fault {
                print_text(&format!("`{name}`: {fault}\n"))?;
                well = false;
            } else if left.still_changed.is_none() && left.put_back.is_empty() {
                print_text(&format!("`{name}`: nothing was left to put back\n"))?;
            }
            if let Some(still) = left.still_changed {
                well = false;
                is_held |= still.is_held;
                Error::StillChanged { host: name.clone(), still }.tell(console);
            }
        }
        for (name, came) in kernels_back(&mut hosts, args.reboot_limit, &flags).await? {
            match came {
                Ok(added) => print_text(&format!("`{name}`: rebooted, without {added} of a profile\n"))?,
                Err(error) => {
                    error.warn();
                    well = false;
                }
            }
        }
        close(hosts).await?;
        Ok(match (is_held, well) {
            (true, _) => Exit::Error,
            (false, true) => Exit::Fine,
            (false, false) => Exit::FellShort,
        })
    })
}

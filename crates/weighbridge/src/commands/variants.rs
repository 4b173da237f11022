//! `weighbridge ab` and `calibrate`: compare one test with variants of itself, or with itself.

use wb_results::experiment::Experiment;
use wb_session::SessionOptions;
use wb_session::variants::{self, AbOptions, CalibrationOptions};

use super::selection::resolve_single_test;
use crate::cli::variants::{AbArgs, CalibrateArgs, SingleTestFlags};
use crate::cli::{AB_PREFIX, CALIBRATE_PREFIX};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn ab(args: &AbArgs, console: &Console) -> Result<Exit, Error> {
    let (flags, events) = (&args.single_test, console.events());
    let blocks = args.samples.map_or((args.min_blocks, args.max_blocks), |samples| (samples, samples));
    let options = AbOptions::new(&args.variants, blocks, flags.threshold, args.error_rate)?;
    let request = resolve_single_test(flags, &events)?;
    let session = session_options(flags, AB_PREFIX);
    let (result, status) = variants::ab(&options, request, &session, &events)?;
    if flags.json {
        print_json(&result)?;
        // The text output shows duplicates with their cases.
        let duplicates = result.by_case().filter_map(|case| case.first()).flat_map(|case| &case.duplicates);
        duplicates.for_each(|duplicate| message!("warning: {duplicate}"));
    } else {
        print_experiment(&Experiment::Variants(result.clone()), &session, console)?;
    }
    let mut results = result.cases.iter().flat_map(|case| &case.variants).filter_map(|variant| variant.result);
    let is_worse = results.any(|result| result.verdict.is_worse());
    Ok(if is_worse { Exit::Regression } else { status.into() })
}

pub(crate) fn calibrate(args: &CalibrateArgs, console: &Console) -> Result<Exit, Error> {
    let (flags, events) = (&args.single_test, console.events());
    let options = CalibrationOptions { runs: args.runs, samples: args.samples, threshold: flags.threshold };
    let request = resolve_single_test(flags, &events)?;
    let session = session_options(flags, CALIBRATE_PREFIX);
    let (result, status) = variants::calibrate(&options, request, &session, &events)?;
    if flags.json {
        print_json(&result)?;
    } else {
        print_experiment(&Experiment::Calibration(result), &session, console)?;
    }
    Ok(status.into())
}

fn session_options(flags: &SingleTestFlags, prefix: &str) -> SessionOptions {
    flags.run_folder.session_options(prefix, &flags.hosts, &flags.preparation)
}

fn print_experiment(experiment: &Experiment, session: &SessionOptions, console: &Console) -> Result<(), Error> {
    print_text(&wb_report::compare::experiment_text(experiment, console.stdout_style))?;
    print_text(&format!("\nrun folder: {}\n", session.run_folder.path.display()))
}

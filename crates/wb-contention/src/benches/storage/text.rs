//! `storage`.

use wb_results::contention::{StorageAnswer, at_profile};

use crate::figures::{percent, size};
use crate::format::{Detail, hashd, latency, resources};
use crate::spec::{FormatOptions, Statistics};

pub(crate) fn text(answer: &StorageAnswer, detail: Detail, options: &FormatOptions) -> String {
    let head = format!("Params: {} loops={}\n\n", hashd(&answer.hashd), answer.loops);
    head + &body(answer, detail, options)
}

pub(crate) fn body(answer: &StorageAnswer, detail: Detail, options: &FormatOptions) -> String {
    let StorageAnswer { final_io, all_io, mof, usage, usage_stdev, size: footprint, size_stdev, .. } = answer;
    let rates = [final_io.read, final_io.write, all_io.read, all_io.write].map(size);
    let [read_final, write_final, read_all, write_all] = rates;
    let memory = match answer.loops {
        1 => format!("usage={} size={}", size(*usage), size(*footprint)),
        _ => format!(
            "usage_mean/stdev={}/{} size_mean/stdev={}/{}",
            size(*usage),
            size(*usage_stdev),
            size(*footprint),
            size(*size_stdev)
        ),
    };
    let relation = if answer.is_lower_bound { ">=" } else { "=" };
    let resources = match (detail, &answer.resources) {
        (Detail::Full, Some(resources)) => resources::text(resources, options.statistics),
        (Detail::Full, None) if options.statistics != Statistics::None => {
            "\nno statistics of the kernel were recorded: measure again\n".to_owned()
        }
        (Detail::Full, None) | (Detail::Summary, _) => String::new(),
    };
    let text = format!(
        "{}{resources}\nIO BPS: read_final={read_final} write_final={write_final} read_all={read_all} write_all={write_all}\n\n\
         Memory offloading: factor{relation}{mof:.3}{} {memory} missing={}%\n",
        latency::text(&answer.latency, detail),
        at_profile(answer.memory.profile),
        percent(answer.missing)
    );
    if answer.is_lower_bound {
        text + "the largest footprint that was tried is supported: the factor is a lower bound\n"
    } else {
        text
    }
}

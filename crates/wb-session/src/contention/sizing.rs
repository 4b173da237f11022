//! Parameters of hashd, from properties to sizing, and from what it found to the workload.

use wb_contention::spec::RequestProperties;
use wb_contention_worker::MemoryShare;
use wb_hashd::sizing::{SizingConfig, SizingResult};
use wb_hashd::{HashdConfig, HashdParams};
use wb_model::Bytes;
use wb_results::contention::{HashdParameters, TimeScale};

use super::ContentionOptions;

/// The shortest window of sizing, relative to its length.
const MIN_WINDOW_SCALE: f64 = 0.1;

#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) fake_cpu_load: bool,
    pub(super) rps_max: Option<u32>,
    pub(super) requests: RequestProperties,
}

/// How hashd is sized for the memory of a share. What is not given has hashd's default.
pub(super) fn sizing_config(
    load: Load,
    memory: &MemoryShare,
    options: &ContentionOptions,
    scale: Option<TimeScale>,
) -> SizingConfig {
    let RequestProperties { hash_size, chunk_pages, log_bps } = load.requests;
    let default = HashdParams::default();
    SizingConfig {
        params: HashdParams {
            fake_cpu_load: load.fake_cpu_load,
            file_size_mean: hash_size.unwrap_or(default.file_size_mean),
            chunk_pages: chunk_pages.unwrap_or(default.chunk_pages),
            log_bps: log_bps.unwrap_or(default.log_bps),
            ..default
        },
        hash_size,
        chunk_pages,
        rps_max: load.rps_max.map(f64::from),
        memory: Some(SizingConfig::footprint_for(memory.share)),
        dir: Some(options.dir.clone()),
        seed: options.seed,
        window_scale: scale.map_or(1.0, |scale| scale.factor().max(MIN_WINDOW_SCALE)),
        ..SizingConfig::default()
    }
}

/// What sizing found, as parameters of later benches.
pub(super) fn found_parameters(result: &SizingResult) -> HashdParameters {
    let HashdParams { file_size_mean, rps_max, chunk_pages, log_bps, fake_cpu_load, .. } = result.params;
    HashdParameters {
        hash_size: file_size_mean,
        // Sizing always determines it.
        rps_max: rps_max.unwrap_or_default(),
        mem_size: Bytes(result.footprint),
        chunk_pages,
        log_bps,
        fake_cpu_load,
    }
}

/// hashd with parameters that were found.
pub(super) fn workload(parameters: &HashdParameters, options: &ContentionOptions) -> HashdConfig {
    let HashdParameters { hash_size, rps_max, mem_size, chunk_pages, log_bps, fake_cpu_load } = *parameters;
    HashdConfig {
        params: HashdParams {
            file_size_mean: hash_size,
            rps_max: Some(rps_max),
            mem_frac: 1.0,
            chunk_pages,
            log_bps,
            fake_cpu_load,
            ..HashdParams::default()
        },
        dir: Some(options.dir.clone()),
        memory: Some(mem_size),
        seed: options.seed,
        ..HashdConfig::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::super::test_stage::options;
    use super::*;

    #[test]
    fn properties_replace_what_is_measured_and_the_footprint_follows_from_the_share() {
        let requests = RequestProperties { hash_size: Some(Bytes(65536)), ..RequestProperties::default() };
        let load = Load { fake_cpu_load: true, rps_max: Some(50), requests };
        let memory = MemoryShare::new(None, Bytes(1 << 30)).unwrap();
        let config = sizing_config(load, &memory, &options(), Some("0.02".parse().unwrap()));
        assert_eq!((config.params.file_size_mean, config.hash_size), (Bytes(65536), Some(Bytes(65536))));
        assert_eq!((config.chunk_pages, config.params.chunk_pages), (None, 25));
        assert_eq!((config.rps_max, config.memory, config.window_scale), (Some(50.0), Some(Bytes(4 << 30)), 0.1));
    }

    #[test]
    fn the_workload_has_the_parameters_that_were_found() {
        let result = SizingResult {
            params: HashdParams {
                rps_max: Some(120.0),
                mem_frac: 0.3,
                file_size_mean: Bytes(8192),
                ..HashdParams::default()
            },
            memory: 1000,
            footprint: 300,
            is_limited_by_memory: false,
            unconverged: Vec::new(),
            rounds: 1,
            repeated: 0,
            disturbed: 0,
            seconds: 1.0,
        };
        let found = found_parameters(&result);
        let config = workload(&found, &options());
        assert_eq!((config.memory, config.params.mem_frac), (Some(Bytes(300)), 1.0));
        assert_eq!((config.params.rps_max, config.params.file_size_mean), (Some(120.0), Bytes(8192)));
    }
}

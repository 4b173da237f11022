//! Specifications of what `format` shows: a bench, or an instance of it, with options of its output.

use std::path::PathBuf;

use wb_diagnostics::{Diagnostic, Diagnostics, SourceText};
use wb_results::contention::{Bench, Instance, InstanceLabel};

use super::reader::{self, Group, GroupReader};
use super::selected::is_selected;
use super::{Name, refuse_stages};

/// What to show of a bench: `BENCH[:OPTION,…]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FormatSpec {
    pub bench: Bench,
    /// `None`: all instances of the bench.
    pub id: Option<String>,
    /// The label with which an instance is shown: `iocost-tune.2`.
    pub label: Option<InstanceLabel>,
    pub options: FormatOptions,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FormatOptions {
    /// For `iocost-qos`: all figures of the benches that it consists of.
    pub sub_full: bool,
    /// For `storage`: statistics of the kernel.
    pub statistics: Statistics,
    /// For `iocost-tune`: a few lines instead of all.
    pub high_level: bool,
    /// For `iocost-tune`: write a PDF.
    pub pdf: Option<PdfFile>,
}

/// Which statistics of the kernel are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Statistics {
    #[default]
    None,
    /// Those that show how memory is reclaimed.
    Main,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PdfFile {
    /// The name of the run with `.pdf`.
    OfRun,
    At(PathBuf),
}

impl super::value::Value for PdfFile {
    const EXPECTED: &'static str = "a file, or no value";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::At(text.into()))
    }

    fn alone() -> Option<Self> {
        Some(Self::OfRun)
    }
}

impl FormatSpec {
    pub fn includes(&self, instance: &Instance) -> bool {
        is_selected(instance, self.bench, self.id.as_deref(), self.label.as_ref())
    }

    /// Whether it is for one instance, and so takes precedence over one for all of the bench.
    pub fn names_instance(&self) -> bool {
        self.id.is_some() || self.label.is_some()
    }

    /// Parses an argument of `format`.
    pub fn parse(text: &str) -> Result<Self, Diagnostics> {
        let source = SourceText::new("command line", text);
        let (bench, label, groups) = reader::split_instance(&source)?;
        let mut groups = groups.into_iter();
        let mut first = GroupReader::new(&source, groups.next().unwrap_or(Group::empty(text.len())));
        refuse_stages(bench, &groups.collect::<Vec<_>>(), &source)?;
        let id = first.take::<Name>("id").map(|name| name.0);
        let mut options = FormatOptions::default();
        match bench {
            Bench::IocostQos => options.sub_full = first.take("sub-full").unwrap_or_default(),
            Bench::IocostTune => {
                options.pdf = first.take("pdf");
                options.high_level = first.take("high-level").unwrap_or_default();
            }
            Bench::Storage | Bench::IocostParams | Bench::HashdParams | Bench::Protection => {}
        }
        first.finish()?;
        if options.pdf.is_some() && options.high_level {
            return Err(Diagnostic::new("`pdf` and `high-level` exclude each other").into());
        }
        Ok(Self { bench, id, label, options })
    }
}

//! A user's template of a guest's domain XML: its placeholders, and what its domain must contain.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::domain::DomainSpec;
use crate::error::ProfileErrorKind;
use crate::host_context::HostAsset;
use crate::image::GuestBoot;

/// The elements of a domain whose text is read.
const KERNEL: [&str; 3] = ["domain", "os", "kernel"];
const INITRD: [&str; 3] = ["domain", "os", "initrd"];
const CMDLINE: [&str; 3] = ["domain", "os", "cmdline"];
const NAME: [&str; 2] = ["domain", "name"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilledTemplate {
    pub(crate) xml: String,
    /// The huge pages that back its memory, if it asks for any.
    pub(crate) huge_pages: Option<PageSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// The default of its host.
    Default,
    Kibibytes(u64),
}

/// Fills in a template. Fails if it contains an unknown placeholder, is not well-formed, does not use the guest's name,
/// disk and seed, or cannot boot the guest's image.
pub(crate) fn fill(spec: &DomainSpec<'_>, template: &HostAsset) -> Result<FilledTemplate, ProfileErrorKind> {
    let invalid = |message: String| ProfileErrorKind::Xml { file: template.name.clone(), message };
    let xml = replace_placeholders(spec, &template.text).map_err(invalid)?;
    let domain = ParsedDomain::parse(&xml).map_err(|error| invalid(format!("invalid XML: {error}")))?;
    domain.require_own_resources(spec).map_err(invalid)?;
    domain.require_kernel(spec).map_err(invalid)?;
    Ok(FilledTemplate { huge_pages: domain.huge_pages, xml })
}

/// The placeholders, each with its value for a guest; none where the guest's image or host has no such value.
fn placeholders(spec: &DomainSpec<'_>) -> [(&'static str, Option<String>); 13] {
    let (kernel, initrd, arguments) = match &spec.base_image.boot {
        GuestBoot::Disk => (None, None, None),
        GuestBoot::Kernel { kernel, initrd, arguments } => (Some(kernel), Some(initrd), Some(arguments)),
    };
    let some = |text: &str| Some(text.to_owned());
    [
        ("name", some(spec.name)),
        ("disk", some(spec.disk)),
        ("seed", some(spec.seed)),
        ("console", some(spec.console)),
        ("mac", some(spec.mac)),
        ("network", some(&spec.guests.network)),
        ("cpus", Some(spec.size.cpus.to_string())),
        ("memory_kb", Some((spec.size.memory.0 >> 10).to_string())),
        ("virt_type", some(spec.virt_type.name())),
        ("hugepage_kb", spec.hugepage_kb.map(|size| size.to_string())),
        ("kernel", kernel.cloned()),
        ("initrd", initrd.cloned()),
        ("kernel_arguments", arguments.cloned()),
    ]
}

/// Replaces each `%(NAME)s` by its value, escaped for XML.
fn replace_placeholders(spec: &DomainSpec<'_>, text: &str) -> Result<String, String> {
    let values = placeholders(spec);
    let mut pieces = text.split("%(");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let name = piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let value = values.iter().find(|(placeholder, _)| *placeholder == name);
        let rest = piece.strip_prefix(name).and_then(|rest| rest.strip_prefix(")s"));
        match (value, rest) {
            (Some((_, Some(value))), Some(rest)) => filled.extend([&escape(value), rest]),
            (Some((_, None)), Some(_)) if name == "hugepage_kb" => {
                return Err("`%(hugepage_kb)s` has no value: the host has no huge pages".to_owned());
            }
            (Some((_, None)), Some(_)) => {
                return Err(format!(
                    "`%({name})s` has no value: the image `{}` boots from its disk, without a kernel of its own",
                    spec.base_image.name
                ));
            }
            (_, None) => return Err(format!("incomplete placeholder `%({name}`: expected `%(NAME)s`")),
            (None, _) => {
                let names = values.iter().map(|(placeholder, _)| *placeholder).collect::<Vec<_>>().join(", ");
                return Err(format!("unknown placeholder `%({name})s`: expected one of {names}"));
            }
        }
    }
    Ok(filled)
}

/// The parts of a domain's XML that depend on the guest.
#[derive(Debug, Default)]
struct ParsedDomain {
    name: String,
    disks: Vec<String>,
    /// Empty if it boots from a disk.
    kernel: String,
    initrd: String,
    cmdline: String,
    huge_pages: Option<PageSize>,
}

impl ParsedDomain {
    fn parse(xml: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(xml);
        // libvirt refuses `--` in a comment.
        reader.config_mut().check_comments = true;
        let (mut domain, mut open_elements) = (Self::default(), Vec::<String>::new());
        loop {
            match reader.read_event().map_err(|error| error.to_string())? {
                Event::Start(element) => {
                    domain.record_element(&element, &open_elements)?;
                    open_elements.push(element.name().as_ref().to_owned());
                }
                Event::Empty(element) => domain.record_element(&element, &open_elements)?,
                Event::End(_) => drop(open_elements.pop()),
                Event::Text(text) => domain.record_text(&text, &open_elements),
                Event::CData(text) => domain.record_text(&text, &open_elements),
                Event::GeneralRef(reference) => domain.record_text(&resolve(&reference)?, &open_elements),
                Event::Eof => match open_elements.last() {
                    None => return Ok(domain.trimmed()),
                    Some(open) => return Err(format!("<{open}> is not closed")),
                },
                _ => {}
            }
        }
    }

    /// Records the file of an element that is a disk's source, and huge pages.
    fn record_element(&mut self, element: &BytesStart<'_>, open_elements: &[String]) -> Result<(), String> {
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = quick_xml::escape::unescape(&attribute.value).map_err(|error| error.to_string())?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        let attribute = |name: &str| attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (open_elements.last().map(String::as_str), element.name().as_ref()) {
            (Some("disk"), "source") => self.disks.extend(attribute("file").map(str::to_owned)),
            (Some("memoryBacking"), "hugepages") => self.huge_pages = Some(PageSize::Default),
            (Some("hugepages"), "page") => {
                let size = attribute("size").and_then(|size| size.parse().ok());
                let size = size.and_then(|size| kibibytes(size, attribute("unit").unwrap_or("KiB")));
                self.huge_pages = Some(PageSize::Kibibytes(size.ok_or("invalid size of a <page>")?));
            }
            _ => {}
        }
        Ok(())
    }

    fn record_text(&mut self, text: &str, open_elements: &[String]) {
        let is = |path: &[&str]| open_elements == path;
        match () {
            () if is(&NAME) => self.name += text,
            () if is(&KERNEL) => self.kernel += text,
            () if is(&INITRD) => self.initrd += text,
            () if is(&CMDLINE) => self.cmdline += text,
            () => {}
        }
    }

    fn trimmed(mut self) -> Self {
        for text in [&mut self.name, &mut self.kernel, &mut self.initrd, &mut self.cmdline] {
            *text = text.trim().to_owned();
        }
        self
    }

    /// Requires the name, disk and seed created for the guest. Otherwise it would write to another disk, and without the
    /// seed nobody could log in.
    fn require_own_resources(&self, spec: &DomainSpec<'_>) -> Result<(), String> {
        if self.name != spec.name {
            return Err("invalid <name>: expected `%(name)s`, which identifies the guest".to_owned());
        }
        for (placeholder, path) in [("disk", spec.disk), ("seed", spec.seed)] {
            if !self.disks.iter().any(|disk| disk == path) {
                return Err(format!("no <disk> has `%({placeholder})s` as the file of its <source>"));
            }
        }
        Ok(())
    }

    /// Requires a kernel if the image's disk has no boot loader: the image's own, with everything that it needs to find
    /// its root, or another one, whose other needs only the user knows.
    fn require_kernel(&self, spec: &DomainSpec<'_>) -> Result<(), String> {
        let GuestBoot::Kernel { kernel, initrd, arguments } = &spec.base_image.boot else { return Ok(()) };
        if !self.kernel.is_empty() && self.kernel != *kernel {
            return Ok(());
        }
        let elements = [
            ("<kernel>%(kernel)s</kernel>", self.kernel == *kernel),
            ("<initrd>%(initrd)s</initrd>", self.initrd == *initrd),
            ("<cmdline>%(kernel_arguments)s</cmdline>", self.cmdline.contains(arguments.trim())),
        ];
        let missing: Vec<&str> =
            elements.iter().filter(|(_, is_there)| !is_there).map(|(element, _)| *element).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "the disk of the image `{}` has no boot loader: expected {} in <os>",
            spec.base_image.name,
            missing.join(", ")
        ))
    }
}

/// The text of `&amp;` or `&#38;`.
fn resolve(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(character.to_string());
    }
    let name: &str = reference;
    resolve_predefined_entity(name).map(str::to_owned).ok_or_else(|| format!("unknown entity `&{name};`"))
}

/// A size with one of libvirt's units in KiB; none for another unit, or no whole number.
fn kibibytes(size: u64, unit: &str) -> Option<u64> {
    let bytes: u64 = match unit {
        "b" | "bytes" => 1,
        "KB" => 1_000,
        "k" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    let bytes = size.checked_mul(bytes).filter(|bytes| *bytes > 0)?;
    (bytes % 1024 == 0).then_some(bytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::super::domain::tests::with_spec;
    use super::*;
    use crate::profile::GuestsConfig;

    const DISKS: &str = "<disk><source file='%(disk)s'/></disk><disk><source file=\"%(seed)s\"></source></disk>";

    fn boots_with_kernel() -> GuestBoot {
        let arguments = "root=LABEL=weighbridge note=\"a & b\"".to_owned();
        GuestBoot::Kernel { kernel: "/i/kernel".to_owned(), initrd: "/i/initrd".to_owned(), arguments }
    }

    /// The result of filling in a user's template for an image that boots this way.
    fn fill_for(boot: GuestBoot, guests: &GuestsConfig, xml: &str) -> Result<FilledTemplate, String> {
        let template = HostAsset { name: "guest.xml".to_owned(), text: xml.to_owned() };
        let filled = with_spec(guests, |spec| {
            let base_image = &crate::image::BaseImage { boot, ..spec.base_image.clone() };
            fill(&DomainSpec { base_image, ..spec.clone() }, &template)
        });
        filled.map_err(|error| error.to_string())
    }

    fn fill_in(xml: &str) -> Result<String, String> {
        fill_for(GuestBoot::Disk, &GuestsConfig::default(), xml).map(|filled| filled.xml)
    }

    fn domain(os: &str, more: &str) -> String {
        format!("<domain><name>%(name)s</name><os>{os}</os>{more}<devices>{DISKS}</devices></domain>")
    }

    #[test]
    fn domain_template_must_use_the_guests_name_disk_and_seed() {
        let domain = |disks: &str| format!("<domain><name>%(name)s</name><devices>{disks}</devices></domain>");
        assert!(fill_in(&domain(DISKS)).unwrap().contains("file='/f/vm1.disk'"));
        let rejected = [
            domain("<disk><source file='/home/me/other.qcow2'/></disk><disk><source file='%(seed)s'/></disk>"),
            domain("<disk><source file='%(disk)s'/></disk>"),
            domain("<filesystem><source file='%(disk)s'/></filesystem>"),
            format!("<domain><name>mine</name>{DISKS}</domain>"),
            format!("<domain><name>%(name)s</nam>{DISKS}</domain>"),
            domain("%(dsk)s"),
            domain("%(disk"),
            domain("&nothing;"),
            domain("<!-- a -- b -->"),
        ];
        insta::assert_snapshot!(rejected.map(|xml| fill_in(&xml).unwrap_err()).join("\n"), @r"
        guest.xml: no <disk> has `%(disk)s` as the file of its <source>
        guest.xml: no <disk> has `%(seed)s` as the file of its <source>
        guest.xml: no <disk> has `%(disk)s` as the file of its <source>
        guest.xml: invalid <name>: expected `%(name)s`, which identifies the guest
        guest.xml: invalid XML: ill-formed document: expected `</name>`, but `</nam>` was found
        guest.xml: unknown placeholder `%(dsk)s`: expected one of name, disk, seed, console, mac, network, cpus, memory_kb, virt_type, hugepage_kb, kernel, initrd, kernel_arguments
        guest.xml: incomplete placeholder `%(disk`: expected `%(NAME)s`
        guest.xml: invalid XML: unknown entity `&nothing;`
        guest.xml: invalid XML: ill-formed document: forbidden string `--` was found in a comment
        ");
    }

    #[test]
    fn image_without_a_boot_loader_needs_its_kernel_in_the_template() {
        let (kernel, initrd) = ("<kernel>%(kernel)s</kernel>", "<initrd> %(initrd)s </initrd>");
        let cmdline = "<cmdline>quiet %(kernel_arguments)s nosmt</cmdline>";
        let fill = |os: &str| fill_for(boots_with_kernel(), &GuestsConfig::default(), &domain(os, ""));
        let filled = fill(&format!("<type>hvm</type>{kernel}{initrd}{cmdline}")).unwrap().xml;
        assert!(filled.contains("<kernel>/i/kernel</kernel>"), "{filled}");
        assert!(filled.contains("root=LABEL=weighbridge note=&quot;a &amp; b&quot; nosmt"), "{filled}");
        // Another kernel is the user's business.
        fill("<kernel>/home/me/bzImage</kernel>").unwrap();
        let rejected = [
            "<type>hvm</type>".to_owned(),
            "<boot dev='hd'/><kernel/>".to_owned(),
            kernel.to_owned(),
            format!("{kernel}{initrd}<cmdline>quiet</cmdline>"),
            format!("{kernel}{cmdline}"),
        ];
        insta::assert_snapshot!(rejected.map(|os| fill(&os).unwrap_err()).join("\n"), @r"
        guest.xml: the disk of the image `x` has no boot loader: expected <kernel>%(kernel)s</kernel>, <initrd>%(initrd)s</initrd>, <cmdline>%(kernel_arguments)s</cmdline> in <os>
        guest.xml: the disk of the image `x` has no boot loader: expected <kernel>%(kernel)s</kernel>, <initrd>%(initrd)s</initrd>, <cmdline>%(kernel_arguments)s</cmdline> in <os>
        guest.xml: the disk of the image `x` has no boot loader: expected <initrd>%(initrd)s</initrd>, <cmdline>%(kernel_arguments)s</cmdline> in <os>
        guest.xml: the disk of the image `x` has no boot loader: expected <cmdline>%(kernel_arguments)s</cmdline> in <os>
        guest.xml: the disk of the image `x` has no boot loader: expected <initrd>%(initrd)s</initrd> in <os>
        ");
        // An image with a boot loader has none, and needs none.
        assert_eq!(
            fill_in(&domain(kernel, "")).unwrap_err(),
            "guest.xml: `%(kernel)s` has no value: the image `x` boots from its disk, without a kernel of its own"
        );
        fill_in(&domain("<boot dev='hd'/>", "")).unwrap();
    }

    // A value may contain what looks like a placeholder, or markup.
    #[test]
    fn every_placeholder_is_replaced_once_and_escaped() {
        let guests = GuestsConfig { network: "a&b'%(disk)s".to_owned(), ..GuestsConfig::default() };
        let all = with_spec(&guests, placeholders).map(|(name, _)| format!("<x>%({name})s</x>")).concat();
        let filled = fill_for(
            boots_with_kernel(),
            &guests,
            &domain(
                "<kernel>%(kernel)s</kernel><initrd>%(initrd)s</initrd><cmdline>%(kernel_arguments)s</cmdline>",
                &all,
            ),
        );
        let xml = filled.unwrap().xml;
        assert!(xml.contains("<x>a&amp;b&apos;%(disk)s</x>"), "{xml}");
        assert_eq!(xml.matches("%(").count(), 1, "{xml}");
    }

    #[test]
    fn huge_pages_of_a_domain_are_recognised() {
        let pages = |backing: &str| {
            let xml = domain("", &format!("<memoryBacking>{backing}</memoryBacking>"));
            fill_for(GuestBoot::Disk, &GuestsConfig::default(), &xml).map(|filled| filled.huge_pages)
        };
        assert_eq!(pages("<locked/>"), Ok(None));
        assert_eq!(pages("<hugepages/>"), Ok(Some(PageSize::Default)));
        for (page, kibibytes) in [
            ("size='2048'", 2048),
            ("size='2' unit='M'", 2048),
            ("size='1' unit='GiB'", 1 << 20),
            ("size='2097152' unit='bytes'", 2048),
            ("size='%(hugepage_kb)s' unit='KiB'", 2048),
        ] {
            let found = pages(&format!("<hugepages><page {page}/></hugepages>"));
            assert_eq!(found, Ok(Some(PageSize::Kibibytes(kibibytes))), "{page}");
        }
        for page in ["", "size='0'", "size='2' unit='pages'", "size='18446744073709551615' unit='T'"] {
            let message = pages(&format!("<hugepages><page {page}/></hugepages>")).unwrap_err();
            assert_eq!(message, "guest.xml: invalid XML: invalid size of a <page>");
        }
    }
}

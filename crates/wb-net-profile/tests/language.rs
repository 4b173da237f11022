//! Tests of the parser for profiles, and of its diagnostics.

use std::path::{Path, PathBuf};
use std::time::Duration;

use insta::assert_snapshot;
use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;
use wb_diagnostics::Diagnostic;
use wb_net_profile::{
    Extent, FlowopAction, MessageSize, NetProfile, ParsedProfile, PartialReliability, ProfileCheck, ProfileDiagnostics,
    Protocol, StrandKind, Variables, check, decode_text, parse,
};

/// A profile of one group that connects and then executes `flowops`.
fn connected(flowops: &str) -> String {
    format!(
        "<profile name='p'><group nthreads='1'><transaction>\n\
         <flowop type='connect' options='remotehost=h protocol=tcp'/>\n{flowops}\n\
         </transaction></group></profile>"
    )
}

fn read(text: &str) -> ParsedProfile {
    read_with(text, &[])
}

fn read_with(text: &str, variables: &[(&str, &str)]) -> ParsedProfile {
    let variables: Variables = variables.iter().copied().collect();
    parse("p.xml", text, &variables).unwrap_or_else(|diagnostics| panic!("{}", render(&diagnostics)))
}

fn diagnostics(text: &str) -> ProfileDiagnostics {
    diagnostics_with(text, &[])
}

fn diagnostics_with(text: &str, variables: &[(&str, &str)]) -> ProfileDiagnostics {
    let variables: Variables = variables.iter().copied().collect();
    match parse("p.xml", text, &variables) {
        Err(diagnostics) => diagnostics,
        Ok(read) => panic!("nothing is wrong with {read:?}"),
    }
}

/// `line:column message [label]`, a line each.
fn lines(diagnostics: &ProfileDiagnostics) -> String {
    let line = |diagnostic: &Diagnostic| {
        let location = diagnostic.location().expect("every diagnostic is located");
        format!("{} {diagnostic} [{}]", location.source.position(location.span.start), diagnostic.label())
    };
    diagnostics.diagnostics().iter().map(line).collect::<Vec<_>>().join("\n")
}

fn diagnostic_lines(text: &str) -> String {
    lines(&diagnostics(text))
}

/// Renders diagnostics like the command line.
fn render(diagnostics: &ProfileDiagnostics) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .render_report(&mut text, diagnostics)
        .expect("a string takes everything");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn notes(read: &ParsedProfile) -> String {
    read.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn actions(profile: &NetProfile) -> impl Iterator<Item = &FlowopAction> {
    profile.flowops().map(|flowop| &flowop.action)
}

#[test]
fn an_unknown_option_is_shown_in_its_source_line() {
    assert_snapshot!(render(&diagnostics(&connected("<flowop type='write' options='sise=64'/>"))), @r"
     × unknown option `sise`
      ╭─[p.xml:3:31]
    2 │ <flowop type='connect' options='remotehost=h protocol=tcp'/>
    3 │ <flowop type='write' options='sise=64'/>
      ·                               ──┬─
      ·                                 ╰── did you mean `size`?
    4 │ </transaction></group></profile>
      ╰────
     help: `write` accepts conn, size, rsize, batch_size, count, repeat, rate, duration, canfail,
           non_blocking, timeout, poll_timeout, and SCTP options
    ");
}

#[test]
fn several_errors_are_all_shown() {
    let text = "<profile name='p'>\n<group>\n<transaction iterations='5' duration='0'>\n\
        <flowop type='conect' options='protocol=tcp'/>\n</transaction>\n</group>\n</profile>\n";
    assert_snapshot!(render(&diagnostics(text)), @r#"
      × `p.xml` has 4 errors

    Error:
      × missing number of strands
       ╭─[p.xml:2:1]
     1 │ <profile name='p'>
     2 │ <group>
       · ───┬───
       ·    ╰── `nthreads` or `nprocs` is missing
     3 │ <transaction iterations='5' duration='0'>
       ╰────
      help: write `nthreads="1"`

    Error:
      × a transaction with both `iterations` and `duration`
       ╭─[p.xml:3:29]
     2 │ <group>
     3 │ <transaction iterations='5' duration='0'>
       ·                             ────┬───
       ·                                 ╰── `iterations` is given, too
     4 │ <flowop type='conect' options='protocol=tcp'/>
       ╰────
      help: remove one of them: uperf would use only the last

    Error:
      × invalid duration `0`
       ╭─[p.xml:3:39]
     2 │ <group>
     3 │ <transaction iterations='5' duration='0'>
       ·                                       ┬
       ·                                       ╰── must be more than 0
     4 │ <flowop type='conect' options='protocol=tcp'/>
       ╰────
      help: expected a number of seconds, or one with ns, us, ms, s or min: 500us, 10ms, 1.5s, 30

    Error:
      × unknown flowop `conect`
       ╭─[p.xml:4:15]
     3 │ <transaction iterations='5' duration='0'>
     4 │ <flowop type='conect' options='protocol=tcp'/>
       ·               ───┬──
       ·                  ╰── did you mean `connect`?
     5 │ </transaction>
       ╰────
      help: expected one of connect, accept, disconnect, read, write, recv, send, recvfrom, sendto,
            readv, writev, sendfile, sendfilev, think, nop
    "#);
}

#[test]
fn a_removed_dialect_is_named_as_such() {
    let flowops = "<flowop type='write' options='async subtype=rdma size=100'/>\n<flowop type='wait'/>";
    assert_snapshot!(diagnostic_lines(&connected(flowops).replace("=tcp", "=udapl")), @r"
    2:55 unknown protocol `udapl` [unknown]
    3:31 unknown option `async` [unknown]
    3:37 unknown option `subtype` [unknown]
    4:15 unknown flowop `wait` [unknown]
    ");
}

#[test]
fn every_unset_variable_is_reported_once() {
    let text = "<profile><group nthreads='$n'><transaction duration='$time'>
        <flowop type='connect' options='remotehost=$h protocol=$proto'/>
        <flowop type='write' options='size=rand($min,${max})'/><flowop type='read' options='size=${max}'/>
        <flowop type='think' options='$how'/>
        <flowop type='nop' options='count=$a-b rate=$empty'/>";
    let diagnostics = diagnostics_with(text, &[("hh", "x"), ("empty", "")]);
    assert_snapshot!(lines(&diagnostics), @r"
    1:27 the variable `n` is not set [used here]
    1:54 the variable `time` is not set [used here]
    2:52 the variable `h` is not set [did you mean `hh`?]
    2:64 the variable `proto` is not set [used here]
    3:49 the variable `min` is not set [used here]
    3:54 the variable `max` is not set [used here]
    4:39 the variable `how` is not set [used here]
    5:43 invalid variable `$a-b` [not a variable]
    5:53 invalid rate `` [not a rate]
    ");
    assert_eq!(diagnostics.diagnostics()[0].help(), Some("`--var n=VALUE` sets it"));
}

#[test]
fn variables_are_expanded_everywhere() {
    let text = "<profile name='${what}-test'><group nprocs='$N'><transaction iterations=$i rate=${r}>
        <flowop type=connect options='remotehost=${H}.example.org protocol=$proto'>
        <flowop type=write options='size=rand(${min},$max)'>
        <flowop type=read options=\"$opts\">";
    let mut variables = vec![("what", "My"), ("N", "3"), ("i", "1k"), ("r", "10"), ("H", "Www"), ("proto", "TCP")];
    variables.extend([("min", "1"), ("max", "8k"), ("opts", "size=$max  count=2")]);
    let read = read_with(text, &variables);
    assert_eq!(read.profile.name, "My-test");
    let group = &read.profile.groups[0];
    assert_eq!((group.strands, group.kind), (3, StrandKind::Process));
    assert_eq!((group.transactions[0].extent, group.transactions[0].rate), (Extent::Iterations(1024), Some(10.0)));
    let flowops = &group.transactions[0].flowops;
    let FlowopAction::Connect(endpoint) = &flowops[0].action else { panic!("no connect") };
    assert_eq!((endpoint.remote.as_str(), endpoint.protocol), ("Www.example.org", Protocol::Tcp));
    let FlowopAction::Send(message) = &flowops[1].action else { panic!("no write") };
    assert_eq!(message.size, MessageSize::Random { min: 1, max: 8192 });
    assert_eq!(flowops[2].count, 2);
}

#[test]
fn an_error_in_a_variables_value_is_shown_where_the_variable_is_used() {
    let diagnostics = diagnostics_with(&connected("<flowop type='write' options='$opts'/>"), &[("opts", "sise=64")]);
    assert_eq!(diagnostics.diagnostics()[0].excerpt(), "$opts");
}

#[test]
fn old_profiles_are_parsed_unchanged() {
    let text = "\u{feff} <!-- > a note -->\n<Profile NAME = \"Old\" >  >
        <group nthreads=2 >
          <transaction iterations=\"1\">
            <flowop type=\"CONNECT\" options=\"RemoteHost=Here Protocol=UDP\">
          <transaction duration = 5m>
            <flowop type='Redv' options='size=rand( 1 , 1.5K )' />
        <group nprocs='1' name='a &amp; b'><transaction><flowop type=nop/>";
    let read = read(text);
    let profile = &read.profile;
    assert_eq!(profile.name, "Old");
    assert_eq!(profile.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["Group0", "a & b"]);
    assert_eq!(profile.groups[0].transactions.len(), 2);
    let second = &profile.groups[0].transactions[1];
    assert_eq!((second.name.as_str(), second.extent), ("Txn1", Extent::Window(Duration::from_millis(5))));
    assert_eq!(second.flowops[0].name, "readv");
    let Some(FlowopAction::Connect(endpoint)) = actions(profile).next() else { panic!("no connect") };
    assert_eq!(endpoint.remote, "Here");
    assert_snapshot!(notes(&read), @r"line 6: `5m` means 5 milliseconds, as in uperf: write 5ms or 5min");
}

#[test]
fn a_profile_without_a_name_is_named_after_its_file() {
    let text = "<profile><group nthreads=1><transaction><flowop type=nop/>";
    let read = parse("some/where/mine.xml", text, &Variables::new()).expect("it is valid");
    assert_eq!(read.profile.name, "mine");
}

#[test]
fn options_without_effect_are_noted() {
    let text = "<profile><group nthreads=1><transaction rate=1k>
        <flowop type=connect options='remotehost=h protocol=sctp tcp_nodelay cc=bbr engine=pkcs11 stack=rack size=4'/>
        <flowop type=write options='size=4 sctp_pr_policy=rtt sctp_pr_value=50'/>
        <flowop type=read options='size=rand(1,2) rsize=8'/>
        <flowop type=disconnect options='remotehost=h protocol=tcp'/>";
    let read = read(text);
    assert_snapshot!(notes(&read), @r"
    line 1: a rate of `1k` means 1024 per second, as in uperf
    line 2: `tcp_nodelay` has no effect with protocol sctp
    line 2: `cc` has no effect with protocol sctp
    line 2: `engine` is an OpenSSL option and is ignored: TLS is implemented by rustls
    line 2: `stack` is a FreeBSD option and is ignored: Linux has one TCP stack
    line 2: `size` has no effect on `connect`
    line 3: Linux does not support policy `rtt`: messages are never abandoned
    line 4: `rsize` is ignored: both sides use the same size for a message of random size
    line 5: `remotehost` has no effect on `disconnect`
    line 5: `protocol` has no effect on `disconnect`
    ");
    let Some(FlowopAction::Send(message)) = actions(&read.profile).nth(1) else { panic!("no write") };
    assert_eq!(message.sctp.partial, Some(PartialReliability::Never));
}

#[test]
fn errors_are_reported_strictly() {
    let text = "<profile name='p' colour='red'>
        <group nthreads='0'>
          <transaction iterations='1' iterations='2' speed='9'>
            <flowop options='size=4'/>
            <flowop type='connect'/>
            <flowop type='connect' options='remotehost=h protocol=tpc port=70000 conn=0'/>
            <flowop type='write' options='count=10k'/>
            <flowop type='read' options='size=rand(0,4) size=8'/>
            <flowop type='read' options='size=rand(8,4)'/>
            <flowop type='read' options='size=rand(8,4'/>
            <flowop type='think' options='idle busy'/>
            <flowop type='think' options='duration=5parsec canfail=yes timeout'/>
          </transaction>
          <transactoin/>
        </group>
        <group nthreads='1' nprocs='1'></group>
        <group nprocs='4'>
          <transaction></transaction>
          <transaction><flowop type='accept' options='remotehost=h protocol=tcp port=5001'/></transaction>
          <flowop type='nop'/>
        </group>
        <transaction/>
        </profile>
        <profile>
        <group nthreads='1'><transaction><flowop type='nop'/>";
    assert_snapshot!(diagnostic_lines(text), @r"
    1:19 unknown attribute `colour` of `profile` [unknown]
    2:26 integer `0` out of range [out of range]
    3:39 `iterations` is given twice [again here]
    3:54 unknown attribute `speed` of `transaction` [unknown]
    4:13 a flowop without a type [`type` is missing]
    5:13 missing option `remotehost` of `connect` [`remotehost` is missing]
    5:13 missing option `protocol` of `connect` [`protocol` is missing]
    6:67 unknown protocol `tpc` [did you mean `tcp`?]
    6:76 integer `70000` out of range [out of range]
    6:87 integer `0` out of range [out of range]
    7:13 missing option `size` of `write` [`size` is missing]
    7:49 invalid integer `10k` [not an integer]
    8:52 size `0` out of range [out of range]
    8:57 `size` is given twice [again here]
    9:47 invalid random size from 8 to 4 bytes [the minimum exceeds the maximum]
    10:47 invalid size `rand(8,4` [not a size]
    11:13 missing option `duration` of `think` [`duration` is missing]
    11:48 `think` with both `idle` and `busy` [`idle` is given, too]
    12:52 invalid duration `5parsec` [not a duration]
    12:60 `canfail` takes no value [here]
    12:72 `timeout` has no value [a value is missing]
    14:12 unknown element `transactoin` [did you mean `transaction`?]
    16:9 a group without transactions [it does nothing]
    16:29 a group with both `nthreads` and `nprocs` [`nthreads` is given, too]
    18:11 a transaction without flowops [it does nothing]
    19:81 4 processes cannot all accept on one port [fixed for all of them]
    20:11 a flowop outside of a transaction [here]
    22:9 a transaction outside of a group [here]
    24:9 a second profile [starts here]
    25:9 a group outside of a profile [here]
    ");
}

#[test]
fn ill_formed_markup_is_shown_where_it_starts() {
    let text = "hello <profile name='p'>
        < >
        <group nthreads='1>
        <transaction iterations \" duration=''>
        <flowop type='nop' <flowop type='nop'/>
        <!-- never ends";
    assert_snapshot!(diagnostic_lines(text), @r#"
    1:1 text outside of any tag [here]
    2:9 a tag without a name [here]
    3:9 unterminated tag [starts here]
    3:25 unterminated value [starts here]
    3:26 invalid integer `1>` [not an integer]
    4:22 `iterations` has no value [a value is missing]
    4:33 unexpected `"` in a tag [here]
    4:35 `duration` has no value [empty]
    5:9 unterminated tag [starts here]
    6:9 unterminated `<!--` [starts here]
    "#);
}

#[test]
fn empty_texts_are_not_profiles() {
    assert_snapshot!(diagnostic_lines(""), @r"1:1 no profile found []");
    assert_snapshot!(diagnostic_lines("<profile name='p'/>"), @r"1:1 a profile without groups [it does nothing]");
    assert_snapshot!(diagnostic_lines("<group nthreads='1'><transaction><flowop type='nop'/>"), @r"1:1 a group outside of a profile [here]");
}

#[test]
fn a_connection_that_is_certainly_not_open_is_an_error() {
    let text = connected(
        "<flowop type='write' options='conn=2 size=4'/>\n<flowop type='disconnect'/>\n\
         <flowop type='read' options='size=4'/>",
    );
    assert_snapshot!(render(&diagnostics(&text)), @r#"
      × `p.xml` has 2 errors

    Error:
      × `write` uses conn=2, which is not open
       ╭─[p.xml:3:31]
     2 │ <flowop type='connect' options='remotehost=h protocol=tcp'/>
     3 │ <flowop type='write' options='conn=2 size=4'/>
       ·                               ───┬──
       ·                                  ╰── nothing opens it earlier
     4 │ <flowop type='disconnect'/>
       ╰────
      help: open it earlier in this group: `<flowop type="connect" options="conn=2 remotehost=…
            protocol=…"/>`

    Error:
      × `read` uses a connection without a name, which is not open
       ╭─[p.xml:5:1]
     4 │ <flowop type='disconnect'/>
     5 │ <flowop type='read' options='size=4'/>
       · ───────────────────┬──────────────────
       ·                    ╰── it was disconnected earlier
     6 │ </transaction></group></profile>
       ╰────
      help: open it earlier in this group: `<flowop type="connect" options="remotehost=… protocol=…"/
            >`
    "#);
}

#[test]
fn a_disconnect_in_a_loop_is_counted() {
    let rounds = |opened: u32, closed: u32| {
        format!(
            "<profile><group nthreads=1>
             <transaction iterations={opened}><flowop type=connect options='remotehost=h protocol=tcp'/></transaction>
             <transaction iterations={closed}><flowop type=disconnect /></transaction>
             <transaction><flowop type=write options='size=4'/>"
        )
    };
    read(&rounds(5, 4));
    assert_snapshot!(diagnostic_lines(&rounds(5, 5)), @r"4:27 `write` uses a connection without a name, which is not open [it was disconnected earlier]");
    let uncertain = rounds(5, 4).replace("iterations=4", "duration=1s");
    read(&uncertain);
    read(&uncertain.replace("iterations=5", "duration=1s"));
    read(&rounds(5, 0).replace("type=disconnect", "type=read options='conn=7 size=1'"));
}

#[test]
fn a_datagram_is_not_larger_than_it_can_be() {
    let text = connected("<flowop type='write' options='size=64k'/>");
    read(&text);
    assert_snapshot!(diagnostic_lines(&text.replace("=tcp", "=udp")), @r"3:1 a message of 65536 bytes over UDP [too large for a datagram]");
}

#[test]
fn other_files_are_not_profiles() {
    assert_snapshot!(lines(&decode_text("p.xml", b"<profile>\n\xff\xfe").expect_err("not UTF-8")), @r"2:1 this file is not UTF-8 [from here on]");
    let large = vec![b' '; 1024 * 1024 + 1];
    assert_snapshot!(lines(&decode_text("p.xml", &large).expect_err("too large")), @r"1:1 `p.xml` is larger than 1 MiB []");
    assert!(parse("p.xml", &" ".repeat(large.len()), &Variables::new()).is_err());
    let growing = connected("<flowop type='write' options='size=${v}${v}'/>");
    assert_snapshot!(lines(&diagnostics_with(&growing, &[("v", &"9".repeat(40_000))])), @r"3:36 value too long: more than 64 KiB with its variables expanded [here]");
}

#[test]
fn a_check_distinguishes_invalid_from_unsupported() {
    let text = connected("<flowop type='write' options='size=4'/>");
    assert!(matches!(check("p.xml", &text, &Variables::new()), ProfileCheck::Valid { .. }));
    assert!(matches!(check("p.xml", "", &Variables::new()), ProfileCheck::Invalid(_)));
    let ProfileCheck::Unsupported { unsupported: lacks, .. } =
        check("p.xml", &text.replace("=tcp", "=rds"), &Variables::new())
    else {
        panic!("RDS is not implemented")
    };
    assert_eq!(lacks[0].feature, "protocol rds");
}

/// All variables that the profiles of users and the examples use.
fn variables() -> Variables {
    let hosts = ["h", "h1", "h2", "h3", "h4", "host", "host1", "hostlo1", "from", "to"];
    let mut values = vec![("nthr", "4"), ("nth", "2"), ("iter", "10"), ("conn", "3"), ("proto", "tcp")];
    values.extend([("dur", "10s"), ("msg_w", "64"), ("msg_r", "1k"), ("threads", "4"), ("time", "10s")]);
    values.push(("largest", "8k"));
    hosts.iter().map(|host| (*host, *host)).chain(values).collect()
}

fn profiles_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "xml")).collect();
    paths.sort();
    paths
}

fn file(path: &Path) -> Result<ParsedProfile, ProfileDiagnostics> {
    let bytes = std::fs::read(path).expect("it was listed");
    let name = path.file_name().expect("a file").to_string_lossy();
    parse(&name, decode_text(&name, &bytes)?, &variables())
}

#[test]
fn the_examples_are_valid() {
    let paths = profiles_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/net"));
    assert_eq!(paths.len(), 6);
    for path in paths {
        let read = file(&path).unwrap_or_else(|diagnostics| panic!("{}", render(&diagnostics)));
        assert!(read.notes.is_empty(), "{}: {}", path.display(), notes(&read));
        assert_eq!(read.profile.name, path.file_stem().expect("a name").to_string_lossy());
    }
}

#[test]
fn existing_profiles_of_users_are_parsed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uperf-workloads");
    let paths = profiles_in(&folder);
    if paths.is_empty() {
        wb_test_skip::skip!("no profiles of users in {}", folder.display());
        return;
    }
    assert_eq!(paths.len(), 24);
    let (read, invalid): (Vec<_>, Vec<_>) = paths.iter().map(|path| file(path)).partition(Result::is_ok);
    let with_notes = read.into_iter().flatten().filter(|read| !read.notes.is_empty());
    let with_notes: Vec<_> = with_notes.map(|read| format!("{}\n{}", read.profile.name, notes(&read))).collect();
    let [Err(diagnostics)] = invalid.as_slice() else { panic!("{invalid:#?}") };
    assert_eq!(diagnostics.source_name(), "oraclerac.xml");
    assert_snapshot!(lines(diagnostics), @r"
    5:68 unknown protocol `udapl` [unknown]
    8:43 unknown option `async` [unknown]
    8:49 unknown option `subtype` [unknown]
    9:18 unknown flowop `wait` [unknown]
    ");
    assert_snapshot!(with_notes.join("\n"), @r"
    sctp-over-udp
    line 21: Linux does not support policy `rtt`: messages are never abandoned
    sctp
    line 10: Linux does not support policy `rtt`: messages are never abandoned
    specweb
    line 75: `remotehost` has no effect on `disconnect`
    line 75: `protocol` has no effect on `disconnect`
    iSSL
    line 5: `engine` is an OpenSSL option and is ignored: TLS is implemented by rustls
    tcp-change-cc
    line 6: `stack` is a FreeBSD option and is ignored: Linux has one TCP stack
    ");
}

const VALID_PROFILE: &str = "<?xml version='1.0'?><profile name='p'><group nprocs='$nth'><transaction iterations='3' rate='1k'>\
    <flowop type='connect' options='remotehost=${h} protocol=sctp conn=1 sctp_in_streams=4'/>\
    <flowop type='write' options='size=rand(1, 8k) conn=1 sctp_pr_policy=ttl sctp_pr_value=5'/><!-- &lt; -->\
    <flowop type='think' options='duration=1.5ms busy'/></transaction></group></profile>";

/// Tokens of a profile's text, in any order.
const PIECES: &str = "([<>/='\"&$(){},; \n]|<flowop |type=write |options=|size=rand\\(|\
    <profile |<group |<transaction>|nthreads=1|\\$\\{|µ){0,60}";

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let _ = parse("p.xml", &text, &variables());
    }

    #[test]
    fn arbitrary_markup_does_not_panic(text in PIECES) {
        let _ = parse("p.xml", &text, &variables());
    }

    #[test]
    fn arbitrary_changes_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any::<char>()), 0..12)
    ) {
        let mut text: Vec<char> = VALID_PROFILE.chars().collect();
        for (index, change, character) in changes {
            let index = index.index(text.len());
            match change {
                0 => text[index] = character,
                1 if text.len() > 1 => drop(text.remove(index)),
                2 => text.truncate(index + 1),
                _ => text.insert(index, character),
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(diagnostics) = parse("p.xml", &text, &variables()) {
            prop_assert!(!diagnostics.diagnostics().is_empty());
            for diagnostic in diagnostics.diagnostics() {
                let position = diagnostic.location().expect("every diagnostic is located");
                prop_assert_eq!(text.get(position.span.clone()), Some(diagnostic.excerpt()));
            }
            render(&diagnostics);
        }
    }
}

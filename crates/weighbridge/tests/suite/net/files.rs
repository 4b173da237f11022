//! Files written by network runs: response times and XML.

use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::place::NetLab;

const PROFILE: &str = r#"<profile name="a &amp; &lt;b&gt;">
  <group nthreads="1" name="g&quot;1">
    <transaction><flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
    <transaction iterations="20">
      <flowop type="write" options="size=64"/>
      <flowop type="read" options="size=64"/>
    </transaction>
    <transaction><flowop type="disconnect"/></transaction>
  </group>
</profile>"#;

#[test]
fn every_response_time_is_written() {
    let (place, server) = NetLab::with_server();
    place.lab.write("p.xml", PROFILE);
    place.net(&format!("run p.xml -P {} -q -X times.tsv", server.port)).expect_code(0);
    let text = place.lab.read("times.tsv");
    let mut lines = text.lines();
    let head = "# seconds since the run began\tgroup\tthread\tflowop\tresponse time in nanoseconds";
    assert_eq!(lines.next(), Some(head));
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in lines {
        let [seconds, group, thread, flowop, took] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(seconds.split_once('.').is_some_and(|(_, part)| part.len() == 9), "{line}");
        assert!(seconds.parse::<f64>().unwrap() < 60.0 && took.parse::<u64>().unwrap() > 0, "{line}");
        assert_eq!((group, thread), ("g\"1", "0"));
        *counts.entry(flowop.to_owned()).or_default() += 1;
    }
    let all = [("connect", 1), ("disconnect", 1), ("read", 20), ("write", 20)];
    assert_eq!(counts, all.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn xml_is_well_formed_and_has_intervals_and_totals() {
    let (place, server) = NetLab::with_server();
    place.lab.write("p.xml", PROFILE);
    place.net(&format!("run p.xml -P {} -q -x run.xml", server.port)).expect_code(0);
    let text = place.lab.read("run.xml");
    let elements = elements(&text);
    assert_eq!(elements["run"][0]["profile"], "a & <b>");
    assert_eq!(elements["run"][0]["outcome"], "completed");
    assert_eq!(elements["group"][0]["name"], "g\"1");
    assert_eq!(elements["summary"].len(), 2, "one for the run, one for its group");
    assert_eq!(elements["summary"][0]["rounds"], "20");
    let names: Vec<&str> = elements["timeseries"].iter().map(|of| of["machine"].as_str()).collect();
    assert_eq!(names, ["client", "127.0.0.1"]);
    let moved: u64 =
        elements["interval"].iter().map(|interval| interval["received-bytes"].parse::<u64>().unwrap()).sum();
    assert_eq!(moved, 2 * 20 * 64);
}

#[test]
fn xml_of_several_combinations_has_one_run_each() {
    let (place, server) = NetLab::with_server();
    place.net(&format!("rr 127.0.0.1 -P {} -q -t 100ms -l 1,2,3 -x run.xml -X times.tsv", server.port)).expect_code(0);
    let text = place.lab.read("run.xml");
    assert_eq!(elements(&text)["run"].len(), 3);
    let times = place.lab.read("times.tsv");
    assert_eq!(times.lines().filter(|line| line.starts_with("# rr with ")).count(), 3);
}

#[test]
fn unwritable_file_is_reported_before_the_run() {
    let place = NetLab::new();
    let ran = place.net("rr 127.0.0.1:1 -X no/such/folder.tsv").expect_code(1);
    assert_eq!(ran.err, "error: cannot write `no/such/folder.tsv`: No such file or directory\n");
}

/// The attributes of all elements, by element name.
fn elements(text: &str) -> BTreeMap<String, Vec<BTreeMap<String, String>>> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut elements: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    loop {
        let event = match reader.read_event().unwrap() {
            Event::Start(element) | Event::Empty(element) => element,
            Event::Eof => return elements,
            _ => continue,
        };
        let name = event.name().as_ref().to_owned();
        let attributes = event.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            let key = attribute.key.as_ref().to_owned();
            (key, quick_xml::escape::unescape(&attribute.value).unwrap().into_owned())
        });
        elements.entry(name).or_default().push(attributes.collect());
    }
}

//! Tests of results as comma-separated values.

#[allow(dead_code, reason = "only the study is used, not its extras")]
use crate::specimen;
use specimen::cell::CellBuilder;
use wb_model::{Metric, Unit};
use wb_report::csv;
use wb_report::text::Style;

fn lines(text: &str, pattern: &str) -> String {
    text.lines()
        .filter(|line| line.starts_with("id,") || line.contains(pattern))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn each_metric_has_a_row_with_plain_numbers() {
    insta::assert_snapshot!(lines(&csv::metrics(&specimen::study()), "operation=get"), @r"
    id,test,case,worker,unit,direction,primary,n,median,low,high,mean,stddev,min,q1,q3,max,outcome,reason
    Localhost/redis/0000:operation=get/throughput/requests,redis,operation=get,,requests/s,higher,true,8,81395.3112,80675.72333333333,81903.95733333332,81351.3876,469.03903819114174,80675.72333333333,81103.97843333334,81676.47646666667,81903.95733333332,measured,
    Localhost/redis/0000:operation=get/latency/p50,redis,operation=get,,ms,lower,false,8,0.30297515399999997,0.300317844,0.305041008,0.30248141549999996,0.0015575129604552239,0.300317844,0.301574688,0.30307484100000004,0.305041008,measured,
    Localhost/redis/0000:operation=get/latency/p95,redis,operation=get,,ms,lower,false,8,0.519816214,0.5133567400000001,0.5275641919999999,0.5204889245000001,0.004060641679124333,0.5133567400000001,0.519117467,0.522344782,0.5275641919999999,measured,
    Localhost/redis/0000:operation=get/latency/p99,redis,operation=get,,ms,lower,false,8,0.890951126,0.868463648,0.8968617320000001,0.88540568675,0.012600449982284611,0.868463648,0.873389153,0.8958822925,0.8968617320000001,measured,
    ");
}

#[test]
fn cell_without_figures_has_a_row_with_the_reason() {
    insta::assert_snapshot!(lines(&csv::metrics(&specimen::study()), "isa=avx512"), @r#"
    id,test,case,worker,unit,direction,primary,n,median,low,high,mean,stddev,min,q1,q3,max,outcome,reason
    "Localhost/himeno/0000:grid=XL,isa=avx512,threads=1",himeno,"grid=XL,isa=avx512,threads=1",,,,,0,,,,,,,,,,unsupported,unsupported (this CPU has no avx512f)
    "#);
}

#[test]
fn each_value_has_a_row_and_so_has_an_attempt_without_values() {
    let all = csv::samples(&specimen::study());
    insta::assert_snapshot!(lines(&lines(&all, "lpush"), ",5,"), @r"
    id,test,case,worker,unit,sample,attempt,purpose,start_s,duration_s,counted,value,outcome,remarks
    Localhost/redis/0000:operation=lpush,redis,operation=lpush,,,5,0,sample,40,0.52,false,,crashed (redis-benchmark: exit status 1: Error: Server closed the connection),
    Localhost/redis/0000:operation=lpush/throughput/requests,redis,operation=lpush,,requests/s,5,1,sample,42,0.52,true,77752.93344,completed,
    Localhost/redis/0000:operation=lpush/latency/p50,redis,operation=lpush,,ms,5,1,sample,42,0.52,true,0.319093148,completed,
    Localhost/redis/0000:operation=lpush/latency/p95,redis,operation=lpush,,ms,5,1,sample,42,0.52,true,0.54434302,completed,
    Localhost/redis/0000:operation=lpush/latency/p99,redis,operation=lpush,,ms,5,1,sample,42,0.52,true,0.88468716,completed,
    ");
}

#[test]
fn every_row_has_as_many_fields_as_the_header() {
    let study = specimen::study();
    for text in [csv::metrics(&study), csv::samples(&study)] {
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        assert!(reader.records().count() > study.cells.len());
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        assert!(reader.records().all(|record| record.is_ok()));
    }
}

#[test]
fn figures_in_files_and_on_the_terminal_have_one_unit() {
    let units = ["mW", "MW", "mHz", "mflops", "Kbit/s", "kB/s", "KiB/s", "us", "requests/s", "%"];
    let cell = |unit: &&str| {
        let metric = Metric::throughput("throughput", unit).primary();
        CellBuilder::new(&format!("in-{}", units.iter().position(|u| u == unit).unwrap()), "a=1", metric)
            .samples(500.0, 0.2, 8)
            .build()
    };
    let study = wb_study::result::Study { cells: units.iter().map(cell).collect(), ..specimen::study() };
    let text = wb_report::text::summary(&study, Style { width: 200, colour: false });
    let csv = csv::metrics(&study);
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let column = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let mut shown = 0;
    for record in reader.records().map(Result::unwrap) {
        let (unit, median) = (&record[column("unit")], record[column("median")].parse::<f64>().unwrap());
        let figure = Unit::new(unit).quantity(median).to_string();
        let heading = text.find(&format!("{} ·", &record[column("test")])).unwrap();
        let row = text[heading..].lines().nth(1).unwrap();
        assert!(row.contains(&figure), "{median} {unit} in the file is {figure}, not as on the terminal: {row}");
        shown += 1;
    }
    assert_eq!(shown, units.len());
    assert!(text.contains(" mW") && text.contains(" MW") && text.contains(" mHz"), "{text}");
}

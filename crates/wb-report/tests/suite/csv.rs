//! Tests of results as comma-separated values.

#[allow(dead_code, reason = "only the study is used, not its extras")]
use crate::specimen;
use specimen::cell::CellBuilder;
use wb_model::{Metric, Unit};
use wb_report::csv;
use wb_report::text::Style;

fn lines(text: &str, pattern: &str) -> String {
    text.lines()
        .filter(|line| line.starts_with("cell,") || line.contains(pattern))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn each_metric_has_a_row_with_plain_numbers() {
    insta::assert_snapshot!(lines(&csv::metrics(&specimen::study()), "operation=get"), @r"
    cell,profile,test,serial,block-size,grid,huge-pages,isa,kernel,non-temporal,operation,problem-size,rw,threads,metric,unit,worker,direction,primary,n,median,low,high,mean,stddev,min,q1,q3,max,start_s,failed,attempts,invalid,disturbed,outcome,reason
    Localhost/redis/0000:operation=get,Localhost,redis,0000,,,inherit,,,,get,,,,throughput/requests,k requests/s,,higher,true,8,81.3953112,80.6757233333333,81.9039573333333,81.3513876,0.469039038191142,80.6757233333333,81.1039784333333,81.6764764666667,81.9039573333333,12.5,0,8,0,0,measured,
    Localhost/redis/0000:operation=get,Localhost,redis,0000,,,inherit,,,,get,,,,latency/p50,µs,,lower,false,8,302.975154,300.317844,305.041008,302.4814155,1.55751296045522,300.317844,301.574688,303.074841,305.041008,12.5,0,8,0,0,measured,
    Localhost/redis/0000:operation=get,Localhost,redis,0000,,,inherit,,,,get,,,,latency/p95,µs,,lower,false,8,519.816214,513.35674,527.564192,520.4889245,4.06064167912433,513.35674,519.117467,522.344782,527.564192,12.5,0,8,0,0,measured,
    Localhost/redis/0000:operation=get,Localhost,redis,0000,,,inherit,,,,get,,,,latency/p99,µs,,lower,false,8,890.951126,866.603794895312,897.359186911533,885.40568675,12.6004499822846,868.463648,873.389153,895.8822925,896.861732,12.5,0,8,0,0,measured,
    ");
}

#[test]
fn cell_without_figures_has_a_row_with_the_reason() {
    insta::assert_snapshot!(lines(&csv::metrics(&specimen::study()), "isa=avx512"), @r#"
    cell,profile,test,serial,block-size,grid,huge-pages,isa,kernel,non-temporal,operation,problem-size,rw,threads,metric,unit,worker,direction,primary,n,median,low,high,mean,stddev,min,q1,q3,max,start_s,failed,attempts,invalid,disturbed,outcome,reason
    "Localhost/himeno/0000:grid=XL,isa=avx512,threads=1",Localhost,himeno,0000,,XL,inherit,avx512,,,,,,1,,,,,,0,,,,,,,,,,,0,0,0,0,unsupported,unsupported (this CPU has no avx512f)
    "#);
}

#[test]
fn each_value_has_a_row_and_so_has_an_attempt_without_values() {
    let all = csv::samples(&specimen::study());
    insta::assert_snapshot!(lines(&lines(&all, "lpush"), ",5,"), @r"
    cell,profile,test,serial,block-size,grid,huge-pages,isa,kernel,non-temporal,operation,problem-size,rw,threads,metric,unit,worker,sample,attempt,purpose,counted,value,start_s,duration_s,outcome,remarks
    Localhost/redis/0000:operation=lpush,Localhost,redis,0000,,,inherit,,,,lpush,,,,,,,5,0,sample,false,,40,0.52,crashed (redis-benchmark: exit status 1: Error: Server closed the connection),
    Localhost/redis/0000:operation=lpush,Localhost,redis,0000,,,inherit,,,,lpush,,,,throughput/requests,k requests/s,,5,1,sample,true,77.75293344,42,0.52,completed,
    Localhost/redis/0000:operation=lpush,Localhost,redis,0000,,,inherit,,,,lpush,,,,latency/p50,µs,,5,1,sample,true,319.093148,42,0.52,completed,
    Localhost/redis/0000:operation=lpush,Localhost,redis,0000,,,inherit,,,,lpush,,,,latency/p95,µs,,5,1,sample,true,544.34302,42,0.52,completed,
    Localhost/redis/0000:operation=lpush,Localhost,redis,0000,,,inherit,,,,lpush,,,,latency/p99,µs,,5,1,sample,true,884.68716,42,0.52,completed,
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
fn a_metric_has_one_unit_in_all_cells_and_files() {
    let cell = |case: &str, unit: &str, centre: f64| {
        let metric = Metric::throughput("bandwidth", unit).primary();
        CellBuilder::new("copy", case, metric).samples(centre, 0.2, 8).build()
    };
    let cells = vec![cell("n=1", "MB/s", 800.0), cell("n=2", "MB/s", 4000.0), cell("n=3", "kB/s", 2e6)];
    let study = wb_results::Study { cells, ..specimen::study() };
    for text in [csv::metrics(&study), csv::samples(&study)] {
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().clone();
        let column = |name: &str| columns.iter().position(|column| column == name);
        let (unit, value) = (column("unit").unwrap(), column("median").or(column("value")).unwrap());
        // The number of samples has the name of this parameter.
        let case = column("parameter.n").unwrap();
        let is_sample = |record: &::csv::StringRecord| !record.iter().any(|field| field == "warm-up");
        for record in reader.records().map(Result::unwrap).filter(is_sample) {
            assert_eq!(&record[unit], "GB/s");
            let expected = [0.8, 4.0, 2.0][record[case].parse::<usize>().unwrap() - 1];
            assert!((record[value].parse::<f64>().unwrap() / expected - 1.0).abs() < 0.01, "{record:?}");
        }
    }
}

#[test]
fn figures_in_files_and_on_the_terminal_have_one_unit() {
    let units = ["mW", "MW", "mHz", "mflops", "Kbit/s", "kB/s", "KiB/s", "us", "requests/s", "%"];
    let cell = |unit: &&str| {
        let metric = Metric::throughput(&format!("of {unit}"), unit).primary();
        CellBuilder::new(&format!("in-{}", units.iter().position(|u| u == unit).unwrap()), "a=1", metric)
            .samples(500.0, 0.2, 8)
            .build()
    };
    let study = wb_results::Study { cells: units.iter().map(cell).collect(), ..specimen::study() };
    let text = wb_report::text::summary(&study, Style { width: 200, colour: false, is_terminal: true });
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

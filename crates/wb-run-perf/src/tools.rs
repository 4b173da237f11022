//! Translates pbench's tools, such as `iostat:--interval=3`, into commands that run during every sample.

use serde_json::Value;
use wb_diagnostics::Diagnostic;

/// pbench's default sampling interval of tools, in seconds.
const INTERVAL: &str = "3";

/// Translates a list of tools into commands, with a note for each unsupported tool.
pub fn translate(list: &Value, notes: &mut Vec<String>) -> Result<Vec<String>, Diagnostic> {
    let texts = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let Some(texts) = texts else {
        return Err(Diagnostic::new(format!("invalid `pbench_tools` {list}: expected a list of strings"))
            .with_help("example: `[\"sar:--interval=3\", \"iostat:--interval=3\"]`"));
    };
    let mut commands = Vec::new();
    for text in texts {
        match tool_command(text) {
            Some(command) => commands.push(command),
            None => notes
                .push(format!("pbench's tool `{text}` is skipped: pass its command with --tool of `weighbridge run`")),
        }
    }
    Ok(commands)
}

/// The command of a pbench tool; `None` if it is not supported.
fn tool_command(text: &str) -> Option<String> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let words: Vec<&str> = options.split([' ', '=']).filter(|word| !word.is_empty()).collect();
    let interval = match words[..] {
        [] => INTERVAL,
        ["--interval", interval] if interval.parse::<u32>().is_ok_and(|seconds| seconds > 0) => interval,
        _ => return None,
    };
    let poll = |file: &str| format!("sh -c 'while date +%s && cat /proc/{file}; do sleep {interval}; done'");
    Some(match name {
        "sar" => format!("sar -A {interval}"),
        "iostat" => format!("iostat -N -t -y -x -m {interval}"),
        "mpstat" => format!("mpstat -P ALL {interval}"),
        "pidstat" => format!("pidstat -l -d -r -h -u -w {interval}"),
        "vmstat" => format!("vmstat -t {interval}"),
        "turbostat" => format!("turbostat --interval {interval}"),
        "proc-interrupts" => poll("interrupts"),
        "proc-vmstat" => poll("vmstat"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pbench_tools_become_commands() {
        let mut notes = Vec::new();
        let list =
            json!(["sar", "iostat:--interval 5", "proc-vmstat:--interval=3", "perf:--record-opts=-a", "blktrace"]);
        let commands = translate(&list, &mut notes).unwrap();
        assert_eq!(
            commands,
            ["sar -A 3", "iostat -N -t -y -x -m 5", "sh -c 'while date +%s && cat /proc/vmstat; do sleep 3; done'"]
        );
        assert!(commands.iter().all(|line| wb_plan::tools::split_words(line).is_some()));
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("pbench's tool `perf:--record-opts=-a` is skipped"));
        assert!(translate(&json!("sar"), &mut notes).is_err());
    }
}

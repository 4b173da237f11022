//! Names of secrets: of variables, settings, metadata and options.

/// Ends of names of secrets that are written with or without a separator before: `DB_PASSWORD`, `PGPASSWORD`.
const ENDS: [&str; 5] = ["password", "passwords", "passwd", "passphrase", "passcode"];

/// Last words of names of secrets: `API_TOKEN`, `--client-secret`.
const LAST_WORDS: [&str; 14] = [
    "pass",
    "sshpass",
    "userpass",
    "dbpass",
    "secret",
    "secrets",
    "token",
    "apikey",
    "credential",
    "credentials",
    "cookie",
    "auth",
    "authorization",
    "bearer",
];

/// Words before `key` in names of secrets: `API_KEY`. A key alone can be anything: `--key`, `key-maximum`, `public-key`.
const KEYS: [&str; 15] = [
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "account",
    "master",
    "deploy",
    "auth",
    "license",
    "session",
    "shared",
    "storage",
    "subscription",
];

/// Options of fio (`http_…`) and Redis whose names have none of these words.
const OPTIONS: [&str; 4] = ["http_s3_key", "http_s3_sse_customer_key", "requirepass", "masterauth"];

/// Headers of requests whose values are secrets.
const HEADERS: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "private-token",
    "x-vault-token",
];

/// Whether a variable, setting or option of this name holds a secret. Words decide, not parts of them (`keyspace`), and
/// the last one does: `TOKEN_FILE`, `key-maximum` and `tokens_per_second` describe secrets, or something else.
pub fn is_secret_name(name: &str) -> bool {
    if OPTIONS.contains(&name.trim_start_matches('-').replace('-', "_").to_ascii_lowercase().as_str()) {
        return true;
    }
    let words = name_words(name);
    let Some((last, before)) = words.split_last() else { return false };
    let is_key = last == "key" && before.last().is_some_and(|word| KEYS.contains(&word.as_str()));
    // `PWD` alone is the working folder.
    let is_password = last == "pwd" && !before.is_empty();
    is_key || is_password || LAST_WORDS.contains(&last.as_str()) || ENDS.iter().any(|end| last.ends_with(end))
}

/// Whether an option of this name holds several secrets, each a word: `--default-passwords` of run-perf.
pub(super) fn is_list_of_secrets(name: &str) -> bool {
    name_words(name).last().is_some_and(|last| last.ends_with("passwords"))
}

pub(super) fn is_secret_header(name: &str) -> bool {
    HEADERS.contains(&name.to_ascii_lowercase().as_str())
}

/// The words of a name in lower case, without digits at their ends: `dbPass2` is `db`, `pass`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        before = c;
    }
    let trimmed = words.into_iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    trimmed.filter(|word| !word.is_empty()).collect()
}

#[derive(Debug)]
pub(super) struct ShortOption {
    /// The letter with its dash; empty for programs that are listed because their `-p` takes no secret.
    pub option: &'static str,
    /// Whether the next word can be the value.
    pub takes_next: bool,
    /// Whether the value can follow in the same word.
    pub takes_attached: bool,
}

const NEXT_P: ShortOption = ShortOption { option: "-p", takes_next: true, takes_attached: false };
/// `-p` of MySQL's clients, where `-p` alone asks for the password and the next word is the database, and of 7-Zip.
const ATTACHED_P: ShortOption = ShortOption { option: "-p", takes_next: false, takes_attached: true };
const EITHER_P: ShortOption = ShortOption { option: "-p", takes_next: true, takes_attached: true };
const EITHER_UPPER_P: ShortOption = ShortOption { option: "-P", takes_next: true, takes_attached: true };
const NEXT_A: ShortOption = ShortOption { option: "-a", takes_next: true, takes_attached: false };
const NEXT_W: ShortOption = ShortOption { option: "-w", takes_next: true, takes_attached: false };
const NONE: ShortOption = ShortOption { option: "", takes_next: false, takes_attached: false };

/// Short options that take secrets, by program: the same letters mean other things to other programs.
static PROGRAMS: [(&[&str], ShortOption); 7] = [
    (&["sshpass"], EITHER_P),
    (
        &[
            "mysql",
            "mysqladmin",
            "mysqldump",
            "mysqlimport",
            "mysqlslap",
            "mariadb",
            "mariadb-admin",
            "mariadb-dump",
            "mariadb-slap",
            "7z",
            "7za",
            "7zr",
        ],
        ATTACHED_P,
    ),
    (&["mongo", "mongosh", "mongodump", "mongorestore", "cqlsh", "racadm", "rabbitmqadmin", "ipmipower"], NEXT_P),
    (&["ipmitool", "zip", "unzip", "mosquitto_pub", "mosquitto_sub", "sqlcmd"], EITHER_UPPER_P),
    (&["redis-cli", "redis-benchmark", "valkey-cli", "valkey-benchmark", "memtier_benchmark"], NEXT_A),
    (&["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami"], NEXT_W),
    (&["ssh", "scp", "sftp", "rsync", "mkdir", "cp", "install", "docker", "podman"], NONE),
];

/// The option of every unknown program in a command that prepares machines: usually a script of the user that logs in.
pub(super) static PROVISIONER_OPTION: ShortOption = NEXT_P;

/// The option that takes a secret of a program with this path, if the program is known.
pub(super) fn short_option(program: &str) -> Option<&'static ShortOption> {
    let name = program.rsplit('/').next().filter(|name| !name.is_empty())?;
    PROGRAMS.iter().find(|(names, _)| names.contains(&name)).map(|(_, option)| option)
}

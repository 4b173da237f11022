//! Tokens and keys of the control connection.

use std::path::Path;

use wb_net::control::{Credentials, Identity, Token, TokenError, Trust};
use wb_sys::OutputTarget;

use crate::cli::OutputPath;
use crate::cli::net::TrustFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_text, write_file};

/// Environment variable with the token, used without `--token-file`.
const TOKEN_VARIABLE: &str = "WEIGHBRIDGE_NET_TOKEN";

pub(super) fn create_token(file: Option<&OutputPath>) -> Result<Exit, Error> {
    let token = Token::generate().map_err(|error| Error::Internal(error.to_string()))?;
    let line = format!("{}\n", token.reveal());
    let Some(file) = file else {
        print_text(&line)?;
        return Ok(Exit::Success);
    };
    let OutputTarget::File(target) = OutputTarget::new(file.as_path()).map_err(Error::output(file))? else {
        write_file(file, &line)?;
        return Ok(Exit::Success);
    };
    if !token.save(&target).map_err(|error| Error::Internal(error.to_string()))? {
        return Err(Error::Usage {
            what: format!("`{file}` exists already"),
            help: "name another file, or remove it: its token may be in use".to_owned(),
        });
    }
    Ok(Exit::Success)
}

/// Prints the fingerprint of a key, creating the key if the file does not exist.
pub(super) fn print_fingerprint(file: &Path) -> Result<Exit, Error> {
    let identity = Identity::load_or_create(file).map_err(|error| Error::Internal(error.to_string()))?;
    print_text(&format!("{}\n", identity.fingerprint()))?;
    Ok(Exit::Success)
}

pub(super) fn credentials(flags: &TrustFlags) -> Result<Credentials, Error> {
    let token = read_token(flags)?;
    credentials_with(flags, token)
}

/// The credentials of a server; with `pair`, they include a new token, which is returned too.
pub(super) fn server_credentials(flags: &TrustFlags, pair: bool) -> Result<(Credentials, Option<Token>), Error> {
    if !pair {
        return Ok((credentials(flags)?, None));
    }
    let token = Token::generate().map_err(|error| Error::Internal(error.to_string()))?;
    Ok((credentials_with(flags, Some(token.clone()))?, Some(token)))
}

fn read_token(flags: &TrustFlags) -> Result<Option<Token>, Error> {
    Ok(match (&flags.token_file, std::env::var(TOKEN_VARIABLE)) {
        (Some(file), _) => Some(Token::from_file(file).map_err(|error| match error {
            TokenError::InvalidFile { .. } => invalid_token(error.to_string()),
            other => Error::Internal(other.to_string()),
        })?),
        (None, Ok(text)) => Some(text.parse().map_err(|error| invalid_token(format!("{TOKEN_VARIABLE}: {error}")))?),
        (None, Err(_)) => None,
    })
}

fn invalid_token(what: String) -> Error {
    Error::Usage { what, help: "`weighbridge net token` creates one".to_owned() }
}

fn credentials_with(flags: &TrustFlags, token: Option<Token>) -> Result<Credentials, Error> {
    let trust = match (token, flags.trust.clone()) {
        (Some(token), pins) if pins.is_empty() => Trust::Token(token),
        (Some(token), pins) => Trust::Either(token, pins),
        (None, pins) if !pins.is_empty() => Trust::Pinned(pins),
        (None, _) => {
            return Err(Error::Usage {
                what: "no credentials: neither a token nor a trusted fingerprint was given".to_owned(),
                help: format!(
                    "`weighbridge net serve --pair` creates a token and prints the command for the other machine; or create one \
                     with `weighbridge net token FILE` and give both sides --token-file FILE or {TOKEN_VARIABLE}; or give \
                     each side --identity FILE and --trust FINGERPRINT"
                ),
            });
        }
    };
    let identity = match &flags.identity {
        Some(file) => Identity::load_or_create(file),
        None => Identity::generate(),
    };
    Ok(Credentials { identity: identity.map_err(|error| Error::Internal(error.to_string()))?, trust })
}

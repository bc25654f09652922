//! The files of AWS's own tools: keys of a profile, for hosts that have none in the environment.

use std::collections::HashMap;
use std::path::PathBuf;
use std::{env, fs};

use object_store::aws::AmazonS3ConfigKey as Key;

/// Variables that name credentials. One of them leaves the files unread.
const OF_CREDENTIALS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];
/// What is read of a profile.
const SETTINGS: [(&str, Key); 5] = [
    ("aws_access_key_id", Key::AccessKeyId),
    ("aws_secret_access_key", Key::SecretAccessKey),
    ("aws_session_token", Key::Token),
    ("region", Key::Region),
    ("endpoint_url", Key::Endpoint),
];

/// The settings of the profile that AWS_PROFILE names, or of `default`, which the environment does
/// not have.
///
/// # Errors
/// If AWS_PROFILE names a profile that is in no file, or one without keys: its credentials come
/// from elsewhere.
pub(crate) fn find() -> Result<Vec<(Key, String)>, String> {
    let has = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let named = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let name = named.as_deref().unwrap_or("default");
    let mut profile = HashMap::new();
    for (variable, file) in
        [("AWS_CONFIG_FILE", ".aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")]
    {
        let path = env::var_os(variable)
            .map(PathBuf::from)
            .or_else(|| env::home_dir().map(|home| home.join(file)));
        let text = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        profile.extend(section(&text, name));
    }
    let needs_keys = !OF_CREDENTIALS.iter().any(has);
    if needs_keys && named.is_some() && !profile.contains_key("aws_access_key_id") {
        return Err(format!(
            "the profile {name:?} of AWS_PROFILE has no aws_access_key_id; set \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example by `eval \"$(aws configure \
             export-credentials --format env)\"`"
        ));
    }
    let set_otherwise = |key: &Key| match key {
        Key::Region => has(&"AWS_REGION") || has(&"AWS_DEFAULT_REGION"),
        Key::Endpoint => {
            ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"].iter().any(has)
        }
        _ => !needs_keys,
    };
    let settings = SETTINGS.into_iter().filter(|(_, key)| !set_otherwise(key));
    Ok(settings.filter_map(|(name, key)| Some((key, profile.remove(name)?))).collect())
}

/// The settings of a profile in one of the files.
fn section(text: &str, profile: &str) -> HashMap<String, String> {
    let mut is_in = false;
    let mut settings = HashMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let name = name.trim();
            is_in = name.strip_prefix("profile ").unwrap_or(name).trim() == profile;
        } else if is_in
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            settings.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_section() {
        let text = "[default]\naws_access_key_id = a\n# region = x\n[profile work]\nregion=eu\n\
                    aws_access_key_id=b=c\n";
        assert_eq!(
            section(text, "default"),
            HashMap::from([("aws_access_key_id".into(), "a".into())])
        );
        let work = section(text, "work");
        assert_eq!((work["region"].as_str(), work["aws_access_key_id"].as_str()), ("eu", "b=c"));
        assert!(section(text, "other").is_empty());
    }
}

//! Clients of stores, with the credentials that each cloud's own tools find.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
};

use crate::location::Location;
use crate::{StoreError, StoreErrorKind, aws_profile};

/// Requests that fail are sent again up to this number of times, and within this time.
const RETRIES_MAX: usize = 6;
/// Longer than a request, so that one that has run out of time is sent once more.
const RETRY_TIMEOUT: Duration = Duration::from_secs(330);
/// How long a request may take, with all that it brings: a large range on a slow line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
const _: () = assert!(RETRY_TIMEOUT.as_secs() > REQUEST_TIMEOUT.as_secs());

const OF_AWS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or \
                      AWS_SKIP_SIGNATURE=true for a public bucket";
const OF_GOOGLE: &str = "set GOOGLE_APPLICATION_CREDENTIALS, or log in by `gcloud auth \
                         application-default login`, or GOOGLE_SKIP_SIGNATURE=true for a public \
                         bucket";
const OF_AZURE: &str = "set AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or \
                        AZURE_STORAGE_SAS_TOKEN, or AZURE_SKIP_SIGNATURE=true for a public \
                        container";
const OF_HTTP: &str = "an HTTP server is asked without any";

/// An opened store.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// What to set if credentials are missing.
    pub(crate) variables: &'static str,
    /// Whether objects below a prefix can be listed.
    pub(crate) has_folders: bool,
}

pub(crate) fn open(location: &Location) -> Result<Opened, StoreError> {
    let url = location.url.as_str();
    let (store, variables): (object_store::Result<Arc<dyn ObjectStore>>, _) = match location.scheme
    {
        ObjectStoreScheme::AmazonS3 => (amazon(url)?.build().map(|s| Arc::new(s) as _), OF_AWS),
        ObjectStoreScheme::GoogleCloudStorage => {
            (google(url).build().map(|s| Arc::new(s) as _), OF_GOOGLE)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            (azure(url).build().map(|s| Arc::new(s) as _), OF_AZURE)
        }
        _ => (http(location).build().map(|s| Arc::new(s) as _), OF_HTTP),
    };
    let store = store.map_err(|cause| StoreError::of(&cause, variables))?;
    let has_folders = location.scheme != ObjectStoreScheme::Http;
    Ok(Opened { store, variables, has_folders })
}

fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIMEOUT,
    }
}

fn timeout() -> String {
    format!("{} seconds", REQUEST_TIMEOUT.as_secs())
}

/// Whether an endpoint is one of plain HTTP. Who names it wants it.
fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}

fn has_plain(variables: &[&str]) -> bool {
    variables.iter().filter_map(|name| env::var(name).ok()).any(|endpoint| is_plain(&endpoint))
}

fn amazon(url: &str) -> Result<AmazonS3Builder, StoreError> {
    let mut builder = AmazonS3Builder::from_env()
        .with_url(url)
        .with_retry(retry())
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), timeout());
    if has_plain(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]) {
        builder = builder.with_allow_http(true);
    }
    let profile =
        aws_profile::find().map_err(|what| StoreError::new(StoreErrorKind::NoCredentials, what))?;
    for (key, value) in profile {
        if key == AmazonS3ConfigKey::Endpoint && is_plain(&value) {
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_config(key, value);
    }
    Ok(builder)
}

fn google(url: &str) -> GoogleCloudStorageBuilder {
    use object_store::gcp::GoogleConfigKey;
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_url(url)
        .with_retry(retry())
        .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), timeout());
    if has_plain(&["GOOGLE_BASE_URL"]) {
        builder = builder
            .with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true".to_owned());
    }
    builder
}

fn azure(url: &str) -> MicrosoftAzureBuilder {
    use object_store::azure::AzureConfigKey;
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_url(url)
        .with_retry(retry())
        .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), timeout());
    if has_plain(&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"]) {
        builder = builder.with_allow_http(true);
    }
    builder
}

fn http(location: &Location) -> HttpBuilder {
    let mut root = location.url.clone();
    root.set_path("/");
    let options = ClientOptions::new()
        .with_allow_http(location.url.scheme() == "http")
        .with_timeout(REQUEST_TIMEOUT);
    HttpBuilder::new().with_url(root.as_str()).with_client_options(options).with_retry(retry())
}

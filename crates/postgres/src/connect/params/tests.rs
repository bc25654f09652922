use std::fs::{Permissions, create_dir, set_permissions, write};
use std::os::unix::fs::PermissionsExt;

use dray_net::{Roots, Verification};

use super::super::tls::Tls;
use super::*;

fn parse(text: &str, variables: &[(&str, &str)]) -> Result<ConnectParams> {
    ConnectParams::parse_with(text, &|name| {
        let found = variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned());
        found.or_else(|| (name == "PGUSER").then(|| "me".to_owned()))
    })
}

fn places(params: &ConnectParams) -> Vec<String> {
    params.hosts.iter().map(|host| host.uri(&params.dbname)).collect()
}

#[test]
fn hosts() {
    for (text, expected) in [
        ("postgresql://db/d", &["postgresql://db:5432/d"][..]),
        ("postgresql://u@[::1]:7/", &["postgresql://[::1]:7/u"]),
        ("host=a,b port=1,2 dbname=d", &["postgresql://a:1/d", "postgresql://b:2/d"]),
        ("host=a,b port=9", &["postgresql://a:9/me", "postgresql://b:9/me"]),
        ("host=a,b port=,2", &["postgresql://a:5432/me", "postgresql://b:2/me"]),
        ("host=/tmp/x port=3 dbname=d", &["postgresql:///d?host=/tmp/x&port=3"]),
        ("postgresql://%2Ftmp%2Fx:3/d", &["postgresql:///d?host=/tmp/x&port=3"]),
        ("hostaddr=127.0.0.1", &["postgresql://127.0.0.1:5432/me"]),
        ("host=a hostaddr=127.0.0.1", &["postgresql://a:5432/me"]),
        ("port=1", &["postgresql://localhost:1/me"]),
    ] {
        assert_eq!(places(&parse(text, &[]).unwrap()), expected, "{text}");
    }
    let address = Some("127.0.0.1".parse().unwrap());
    let place = parse("host=a hostaddr=127.0.0.1", &[]).unwrap().hosts.remove(0).place;
    assert_eq!(place, Place::Tcp { name: "a".into(), address });
}

#[test]
fn precedence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("service.conf");
    write(&file, "[s]\nhost=service\nport=2\nuser=su\n").unwrap();
    let variables = [("PGHOST", "env"), ("PGPORT", "3"), ("PGDATABASE", "e"), ("PGSERVICE", "s")];
    let mut variables = variables.to_vec();
    variables.push(("PGSERVICEFILE", file.to_str().unwrap()));
    let params = parse("host=given", &variables).unwrap();
    assert_eq!(places(&params), ["postgresql://given:2/e"]);
    assert_eq!(params.user, "su");
    // An empty value is the default, whatever the environment has.
    assert_eq!(
        places(&parse("host=x port='' service=''", &variables).unwrap()),
        ["postgresql://x:5432/e"]
    );
    let text = format!("servicefile={} service=s host=y", file.display());
    assert_eq!(places(&parse(&text, &[]).unwrap()), ["postgresql://y:2/su"]);
    variables.push(("PGSYSCONFDIR", "/nowhere"));
    assert!(
        parse("service=none", &variables).unwrap_err().message().contains("no service \"none\"")
    );
    assert_eq!(
        parse("host=a host=b", &[]).unwrap().hosts[0].place,
        parse("host=b", &[]).unwrap().hosts[0].place
    );
}

#[test]
fn values() {
    let text = "host=h connect_timeout=7 application_name=a options='-c x=1' \
         target_session_attrs=standby \
        load_balance_hosts=random channel_binding=require keepalives_idle=5 tcp_user_timeout=9 \
            client_encoding=UTF8 \
        gssencmode=prefer krbsrvname=postgres ssl_min_protocol_version=TLSv1.3 sslmode=verify-ca \
            sslnegotiation=direct";
    let params = parse(text, &[]).unwrap();
    assert_eq!(params.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(
        (params.application_name.as_str(), params.options.as_deref()),
        ("a", Some("-c x=1"))
    );
    assert_eq!((params.target, params.shuffle), (Target::Standby, true));
    assert_eq!(params.channel_binding, ChannelBinding::Require);
    assert_eq!(params.tcp.user_timeout, Some(Duration::from_millis(9)));
    assert!(
        params.tcp.keepalive.is_some() && params.tls.direct && !params.tls.certificates.allow_1_2
    );
    assert_eq!(params.tls.mode, SslMode::VerifyCa);
    let params =
        parse("host=h keepalives=0 connect_timeout=0 fallback_application_name=f", &[]).unwrap();
    assert!(params.tcp.keepalive.is_none() && params.connect_timeout == Some(NO_TIMEOUT));
    assert_eq!(params.application_name, "f");
    let params = parse("host=h", &[("PGSSLMODE", "require"), ("PGAPPNAME", "env")]).unwrap();
    assert_eq!((params.tls.mode, params.application_name.as_str()), (SslMode::Require, "env"));
    let params = parse("host=h", &[]).unwrap();
    assert_eq!(
        (params.tls.mode, params.tls.certificates.verification),
        (SslMode::Prefer, Verification::None)
    );
    assert_eq!(params.application_name, "dray");
}

/// What libpq verifies by its manual (section "Client Verification of Server Certificates"), for
/// each mode and place of the root certificates.
#[test]
fn root_certificates() {
    let home = tempfile::tempdir().unwrap();
    let default = home.path().join(".postgresql/root.crt");
    let given = home.path().join("given.crt");
    let file = |path: &Path| Roots::File(path.into());
    let nowhere = || Roots::File("/nowhere".into());
    // Whether the weaker modes verify, and the roots of the others.
    let check = |case: &str, text: &str, variables: &[(&str, &str)], weak: bool, strict: Roots| {
        let expected =
            if weak { Verification::Authority(strict.clone()) } else { Verification::None };
        for mode in ["allow", "prefer", "require"] {
            let params = parse(&format!("{text} sslmode={mode}"), variables).unwrap();
            assert_eq!(params.tls.certificates.verification, expected, "{case}, {mode}");
        }
        for (mode, expected) in [
            ("verify-ca", Verification::Authority(strict.clone())),
            ("verify-full", Verification::AuthorityAndName(strict)),
        ] {
            let params = parse(&format!("{text} sslmode={mode}"), variables).unwrap();
            assert_eq!(params.tls.certificates.verification, expected, "{case}, {mode}");
        }
    };
    let in_home = [("HOME", home.path().to_str().unwrap())];
    check("no home", "", &[], false, Roots::NoHome);
    check("an empty home", "", &[("HOME", "")], false, Roots::NoHome);
    check("a home without a file", "", &in_home, false, file(&default));
    check("a file that is missing", "sslrootcert=/nowhere", &in_home, false, nowhere());
    check("the same, without a home", "sslrootcert=/nowhere", &[], false, nowhere());
    check("the same, in the environment", "", &[("PGSSLROOTCERT", "/nowhere")], false, nowhere());
    create_dir(home.path().join(".postgresql")).unwrap();
    write(&default, "").unwrap();
    write(&given, "").unwrap();
    check("a home with a file", "", &in_home, true, file(&default));
    check("an empty name stands for it", "sslrootcert=''", &in_home, true, file(&default));
    let text = format!("sslrootcert={}", given.display());
    check("a file", &text, &in_home, true, file(&given));
    check("a file, without a home", &text, &[], true, file(&given));

    let params = parse("sslrootcert=system", &[]).unwrap();
    let system = Verification::AuthorityAndName(Roots::System);
    assert_eq!(
        (params.tls.mode, params.tls.certificates.verification),
        (SslMode::VerifyFull, system)
    );
    for mode in ["disable", "allow", "prefer", "require", "verify-ca"] {
        parse(&format!("sslrootcert=system sslmode={mode}"), &in_home).unwrap_err();
    }
}

/// A mode that verifies never continues without roots.
#[test]
fn no_verification_without_roots() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.crt");
    write(&empty, "").unwrap();
    let (empty, folder) = (empty.to_str().unwrap(), folder.path().to_str().unwrap());
    for mode in ["verify-ca", "verify-full"] {
        for (text, expected) in [
            (String::new(), "no home directory"),
            ("sslrootcert=/nowhere".to_owned(), "/nowhere does not exist"),
            (format!("sslrootcert={empty}"), "no certificate"),
            (format!("sslrootcert={folder}"), "read"),
        ] {
            let params =
                parse(&format!("host=localhost sslmode={mode} {text}"), &[("HOME", "")]).unwrap();
            let error =
                Tls::prepare(&params.tls, "localhost", [127, 0, 0, 1].into()).err().expect(&text);
            assert_eq!(error.kind(), ErrorKind::Authentication, "{mode} {text}");
            assert!(error.to_string().contains(expected), "{mode} {text}: {error}");
        }
    }
}

#[test]
fn passwords() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    write(&file, "localhost:*:d:u:default\na:5432:d:u:of a\n/tmp/x:*:*:*:folder\n").unwrap();
    set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let variables = [("HOME", home.path().to_str().unwrap())];
    let passwords = |text: &str| {
        let params = parse(&format!("{text} user=u dbname=d"), &variables).unwrap();
        params.hosts.into_iter().map(|host| host.password.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(passwords("host=a,b"), ["of a", ""]);
    assert_eq!(passwords("host=/var/run/postgresql"), ["default"]);
    assert_eq!(passwords("host=/tmp/x"), ["folder"]);
    assert_eq!(passwords("host=a,b password=p"), ["p", "p"]);
    assert_eq!(passwords("host=a password=''"), ["of a"]);
    assert_eq!(passwords("host=a passfile=/nowhere"), [""]);
    set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    assert!(parse("host=a", &variables).unwrap().password_warning.unwrap().contains("0600"));
    let debug = format!("{:?}", parse("postgresql://u:secret@h", &[]).unwrap());
    assert!(!debug.contains("secret"), "{debug}");
}

#[test]
fn required_auth() {
    let allows = |words: &str, method: &str| {
        parse(&format!("require_auth={words}"), &[]).unwrap().required_auth.allows(method)
    };
    assert!(allows("''", "md5"));
    assert!(allows("md5,scram-sha-256", "md5") && !allows("md5,scram-sha-256", "none"));
    assert!(!allows("!password,!md5", "md5") && allows("!password,!md5", "scram-sha-256"));
}

#[test]
fn refused() {
    for (text, expected) in [
        ("hots=a", "\"hots\""),
        ("postgresql://h?x=1", "\"x\""),
        ("port=0", "port is not a number"),
        ("port=70000", "65535"),
        ("host=a,b,c port=1,2", "2 ports for 3 hosts"),
        ("host=a hostaddr=127.0.0.1,127.0.0.2", "1 host names, but 2"),
        ("hostaddr=localhost", "hostaddr"),
        ("host=@x", "abstract"),
        ("connect_timeout=soon", "connect_timeout"),
        ("client_encoding=LATIN1", "client_encoding is \"LATIN1\""),
        ("sslmode=on", "sslmode is \"on\""),
        ("sslmode=require sslrootcert=system", "verify-full with sslrootcert=system"),
        ("sslnegotiation=direct", "sslnegotiation=direct"),
        ("ssl_max_protocol_version=TLSv1.1", "TLSv1.2"),
        ("ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2", "no less"),
        ("gssencmode=require", "GSSAPI is not supported"),
        ("channel_binding=maybe", "channel_binding"),
        ("require_auth=md5,!none", "require_auth"),
        ("require_auth=kerberos", "require_auth"),
        ("target_session_attrs=master", "target_session_attrs"),
        ("load_balance_hosts=yes", "load_balance_hosts"),
        ("requirepeer=postgres", "requirepeer is not supported"),
        ("sslcrldir=/x", "sslcrldir is not supported"),
        ("sslcertmode=require", "sslcertmode"),
        ("replication=database", "replication is not supported"),
    ] {
        let error = parse(text, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    let error = parse("host=h", &[("PGCLIENTENCODING", "LATIN1")]).unwrap_err();
    assert!(error.to_string().contains("LATIN1"));
}

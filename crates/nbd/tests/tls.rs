//! TLS: certificates from files, what is refused without it, and real encryption both ways.

use crate::served;

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use crate::client::{ClientEvent, ClientHandshake};
use flashlore_nbd::server::{Address, Config, Server, TlsFiles, TlsPolicy};
use flashlore_testkit::installed;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use served::{Client, MemoryDisk, PATIENCE, Shelf, goal};

const MIB: usize = 1 << 20;

/// Writes an authority, a server's and a client's certificate into a directory, under the names that
/// clients of NBD expect.
fn make_certificates(directory: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(directory.join("ca-cert.pem"), authority.pem()).unwrap();
    for who in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(directory.join(format!("{who}-cert.pem")), certificate.pem()).unwrap();
        fs::write(
            directory.join(format!("{who}-key.pem")),
            key.serialize_pem(),
        )
        .unwrap();
    }
}

fn files(directory: &Path, clients: bool) -> TlsFiles {
    TlsFiles {
        certificate: directory.join("server-cert.pem"),
        key: directory.join("server-key.pem"),
        client_authority: clients.then(|| directory.join("ca-cert.pem")),
    }
}

fn start(tls: TlsPolicy) -> (Server, std::net::SocketAddr) {
    let config = Config {
        tls,
        ..Config::default()
    };
    let shelf = Arc::new(Shelf(MemoryDisk::new(16 * MIB)));
    let address = [Address::Tcp("127.0.0.1:0".parse().unwrap())];
    let server = Server::start(&address, config, shelf).unwrap();
    let Address::Tcp(address) = server.addresses()[0] else {
        panic!("{:?}", server.addresses());
    };
    (server, address)
}

type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// Connects through STARTTLS, with a client's certificate or without.
fn connect(
    address: std::net::SocketAddr,
    directory: &Path,
    with_certificate: bool,
) -> io::Result<Client<Encrypted>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(directory.join("ca-cert.pem")).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if with_certificate {
        let chain = CertificateDer::from_pem_file(directory.join("client-cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(directory.join("client-key.pem")).unwrap();
        builder.with_client_auth_cert(vec![chain], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut machine = ClientHandshake::new(goal("disk"), true);
    let mut out = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        let received = machine.receive(&byte, &mut out).map_err(io::Error::other)?;
        if received.event == Some(ClientEvent::StartTls) {
            break;
        }
        stream.write_all(&out)?;
        out.clear();
    }
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    loop {
        stream.write_all(&out)?;
        stream.flush()?;
        out.clear();
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        let received = machine.receive(&byte, &mut out).map_err(io::Error::other)?;
        if let Some(ClientEvent::Ready(session)) = received.event {
            return Ok(Client::new(stream, session));
        }
    }
}

#[test]
fn an_encrypted_connection_reads_and_writes() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let config = files(directory.path(), false).load().unwrap();
    let (server, address) = start(TlsPolicy::Required(config));
    let mut client = connect(address, directory.path(), false).unwrap();
    assert!(client.session.structured);
    let data: Vec<u8> = (0..5 * MIB).map(|n| (n >> 5) as u8).collect();
    assert_eq!(client.write(11, &data).unwrap(), None);
    assert!(client.read(11, 5 << 20).unwrap() == data);
    for n in 0..200u64 {
        assert_eq!(client.write(n * 512, &[n as u8; 512]).unwrap(), None);
    }
    assert!(server.drain(PATIENCE));
    assert!(client.reply().is_err());
}

#[test]
fn without_tls_nothing_is_served_where_it_is_required() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let config = files(directory.path(), false).load().unwrap();
    let (_server, address) = start(TlsPolicy::Required(config.clone()));
    let stream = TcpStream::connect(address).unwrap();
    let refused = served::negotiate(stream, "disk").err().unwrap();
    assert!(refused.to_string().contains("demands TLS"), "{refused}");

    let (_server, address) = start(TlsPolicy::Offered(config));
    let stream = TcpStream::connect(address).unwrap();
    assert!(
        served::negotiate(stream, "disk").is_ok(),
        "offered is not required"
    );
    assert!(connect(address, directory.path(), false).is_ok());
}

#[test]
fn a_client_needs_a_certificate_of_the_authority_where_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let config = files(directory.path(), true).load().unwrap();
    let (server, address) = start(TlsPolicy::Required(config));
    assert!(connect(address, directory.path(), false).is_err());
    let mut client = connect(address, directory.path(), true).unwrap();
    assert_eq!(client.read(0, 4).unwrap(), [0; 4]);
    served::eventually("only one is left", || server.connections() == (1, 0));
}

#[test]
fn noise_instead_of_tls_ends_the_connection_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let config = files(directory.path(), false).load().unwrap();
    let (server, address) = start(TlsPolicy::Required(config));
    let mut good = connect(address, directory.path(), false).unwrap();
    for n in 0..20u8 {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut hello = b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0".to_vec();
        hello.extend((0..200).map(|m| n.wrapping_mul(m)));
        stream.write_all(&hello).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(good.read(0, 1).unwrap(), [0]);
    }
    served::eventually("they are gone", || server.connections() == (1, 0));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let good = files(directory.path(), true);
    let error = |change: fn(&mut TlsFiles)| {
        let mut files = good.clone();
        change(&mut files);
        files.load().unwrap_err().to_string()
    };
    assert!(good.load().is_ok());
    assert!(error(|f| f.certificate.set_file_name("none.pem")).contains("none.pem"));
    assert!(error(|f| f.certificate.set_file_name("server-key.pem")).contains("no certificate"));
    assert!(error(|f| f.key.set_file_name("ca-cert.pem")).contains("ca-cert.pem"));
    assert!(error(|f| f.key.set_file_name("client-key.pem")).contains("together"));
    let no_authority = error(|f| f.client_authority = Some("nowhere.pem".into()));
    assert!(no_authority.contains("nowhere.pem"), "{no_authority}");
}

#[test]
fn a_real_client_speaks_tls() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let config = files(directory.path(), true).load().unwrap();
    let (_server, address) = start(TlsPolicy::Required(config));
    let uri = format!(
        "nbds://localhost:{}/disk?tls-certificates={}",
        address.port(),
        directory.path().display()
    );
    if !installed(&["nbdinfo"]) {
        return;
    }
    let output = std::process::Command::new("nbdinfo")
        .args(["--json", &uri])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("\"TLS\": true"), "{said} {complained}");
}

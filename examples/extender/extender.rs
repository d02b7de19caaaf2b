//! A scheduler extender in a hundred lines, with nothing but the standard library and JSON: it keeps pods off nodes of pools that
//! their namespace has no budget for, and prefers the cheapest of the others.
//!
//! ```sh
//! cargo run --example extender -- 127.0.0.1:8888
//! supercargo explain cart-84c7d5f6b-lw8pd --cluster examples/cluster --pods examples/pods.yaml --config examples/extender/config.yaml
//! ```

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

/// What an hour on a node of a pool costs, in cents.
const PRICES: [(&str, i64); 3] = [("spot", 12), ("general", 40), ("gpu", 310)];
/// What a namespace may spend on a node.
const BUDGETS: [(&str, i64); 2] = [("ml", 500), ("shop", 50)];
/// For nodes of unknown pools, and namespaces without a budget of their own.
const USUAL: i64 = 40;
/// No answer has to be read that is longer.
const MAX_BODY_BYTES: usize = 64 << 20;

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8888".to_owned());
    let listener = TcpListener::bind(address)?;
    writeln!(io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    listen(&listener)
}

/// Serves all who come, each in a thread.
pub(crate) fn listen(listener: &TcpListener) -> io::Result<()> {
    for connection in listener.incoming() {
        let connection = connection?;
        thread::spawn(move || serve(connection));
    }
    Ok(())
}

/// Answers one request after another: the scheduler keeps its connections.
fn serve(connection: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    while let Some((path, body)) = request(&mut reader)? {
        let (status, answer) = match (path.as_str(), serde_json::from_slice::<Value>(&body)) {
            ("/filter", Ok(call)) => ("200 OK", filter(&call)),
            ("/prioritize", Ok(call)) => ("200 OK", prioritize(&call)),
            (_, Ok(_)) => ("404 Not Found", json!(format!("there is no verb {path}"))),
            (_, Err(error)) => ("400 Bad Request", json!(error.to_string())),
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        (&connection).write_all(format!("{head}{answer}").as_bytes())?;
    }
    Ok(())
}

/// The path and the body of the next request; `None` if the connection was closed.
fn request(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
        }
    }
    if length > MAX_BODY_BYTES {
        return Err(io::Error::other("the request is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((path, body)))
}

/// ExtenderArgs in, ExtenderFilterResult out: nodes that pass, and a reason for each that does not.
fn filter(call: &Value) -> Value {
    let budget = amount(&BUDGETS, call["Pod"]["metadata"]["namespace"].as_str());
    let (mut passing, mut failed) = (Vec::new(), serde_json::Map::new());
    for node in nodes(call) {
        if price(node) <= budget {
            passing.push(node.clone());
        } else {
            failed.insert(name(node), json!(format!("node(s) cost more than {budget} cents an hour")));
        }
    }
    // What costs too much costs too much without other pods as well: eviction would not help.
    json!({"Nodes": {"items": passing}, "FailedAndUnresolvableNodes": failed})
}

/// ExtenderArgs in, HostPriorityList out: 0 to 10, the cheapest node highest.
fn prioritize(call: &Value) -> Value {
    let dearest = nodes(call).map(price).max().unwrap_or(0).max(1);
    nodes(call).map(|node| json!({"Host": name(node), "Score": 10 - 10 * price(node) / dearest})).collect()
}

fn nodes(call: &Value) -> impl Iterator<Item = &Value> {
    call["Nodes"]["items"].as_array().into_iter().flatten()
}

fn name(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn price(node: &Value) -> i64 {
    amount(&PRICES, node["metadata"]["labels"]["example.com/pool"].as_str())
}

fn amount(table: &[(&str, i64)], key: Option<&str>) -> i64 {
    table.iter().find(|(name, _)| Some(*name) == key).map_or(USUAL, |(_, amount)| *amount)
}

// Requests to the server. The message of an error is one line for the user.

async function answered(response) {
  if (response.ok) return response;
  let detail = `${response.status} ${response.statusText}`;
  try {
    detail = (await response.json()).detail ?? detail;
  } catch {
    /* not JSON: only the status is known */
  }
  throw new Error(detail);
}

async function asked(path, options) {
  try {
    return await answered(await fetch(path, options));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error instanceof TypeError)
      throw new Error("the studio does not answer; is it still running?");
    throw error;
  }
}

export function query(path, params) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") found.append(name, each);
    }
  }
  return `${path}?${found}`;
}

export const get = async (path, params = {}, signal = undefined) =>
  (await asked(query(path, params), { signal })).json();

export const post = async (path, body) =>
  (
    await asked(path, { method: "POST", headers: { "content-type": "application/json" }, body })
  ).json();

// Yield the lines of a streamed answer as they arrive, parsed as JSON.
export async function* postLines(path, body, signal) {
  const response = await asked(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
    if (done) return;
  }
}

export function watchSocket() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}/api/watch`);
}

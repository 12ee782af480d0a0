/**
 * A client with which bough is compared on remote services. It does one thing after the other: it hashes a file, looks it up and
 * uploads it; it starts an instance, and polls it after 0.5 s, then at growing intervals.
 * `serial-client.ts URL CONTEXT`
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [url = "", context = ""] = process.argv.slice(2);
const headers = { authorization: "Bearer benchmark" };
const lines = readFileSync(join(context, "Dockerfile"), "utf8").trim().split("\n");
const files: Record<string, { uuid: string }> = {};
let image = "";

for (const line of lines) {
  if (line.startsWith("FROM ")) {
    const { images } = await call<{ images: { uuid: string }[] }>("GET", `/v1/images?tag=${line.slice(5)}`);
    image = images[0]?.uuid ?? "";
  } else if (line.startsWith("COPY . ")) {
    for (const name of readdirSync(context, { recursive: true, encoding: "utf8" })) {
      if (statSync(join(context, name)).isFile()) files[join("/app", name)] = { uuid: await upload(name) };
    }
  } else {
    image = await runStep(line.slice(4));
  }
}

async function upload(name: string): Promise<string> {
  const bytes = readFileSync(join(context, name));
  const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  const known = await fetch(`${url}/v1/files/${sha256}`, { headers });
  const answer = (await known.json()) as { uuid: string };
  return known.ok ? answer.uuid : (await call<{ uuid: string }>("POST", "/v1/files", bytes)).uuid;
}

async function runStep(command: string): Promise<string> {
  const body = JSON.stringify({ image, command, shell: true, cwd: "/", files });
  const { uuid } = await call<{ uuid: string }>("POST", "/v1/instances", body);
  for (let wait = 500; ; wait = Math.min(wait * 1.5, 5000)) {
    await Bun.sleep(wait);
    const record = await call<{ status: string; result_image_uuid: string }>("GET", `/v1/operations/${uuid}`);
    if (record.status === "SUCCESS") return record.result_image_uuid;
  }
}

async function call<Answer>(
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
  return (await response.json()) as Answer;
}

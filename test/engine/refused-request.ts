import { expect } from "bun:test";
import type { TestEngine } from "../support/engine.ts";

/** Expects a refusal of `POST /v1/instances`. In the request "UUID" means an uploaded file, and "BASE" the image. */
export async function expectRefusal(
  engine: TestEngine,
  request: { image: string; [field: string]: unknown },
  status: number,
  message: string,
): Promise<void> {
  const { uuid } = await engine.upload("content");
  const body = JSON.stringify({ command: "true", shell: true, cwd: "/", ...request });
  const response = await engine.fetch(
    "POST",
    "/v1/instances",
    body.replaceAll("UUID", uuid).replaceAll("BASE", request.image),
  );
  expect(response.status).toBe(status);
  expect(((await response.json()) as { error: string }).error).toContain(message);
}

import { asRecord, asText } from "../../src/service/http/json.ts";
import type { InstanceRequest } from "../../src/service/types.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import { readJson } from "./recording.ts";
import { endOperation, perform } from "./run.ts";

/** Checks the request as a service would, and starts what the script says. */
export async function startInstance({ state, options, request, recorded }: RouteCall): Promise<Response> {
  const body = asRecord(await readJson(request, recorded));
  const fault = body === undefined ? "the body is no JSON object" : faultOf(body);
  if (fault !== undefined) return answerWith.error(400, fault);
  const instance = body as unknown as InstanceRequest;
  const missing = (error: string) => {
    if (options.missing !== "failed operation") return answerWith.error(options.missing ?? 404, error);
    const operation = state.addOperation("instance", {});
    endOperation(operation, { status: "FAILED", error });
    return Response.json({ uuid: operation.record.uuid }, { status: 201 });
  };
  const image = state.findImage(instance.image);
  if (image === undefined) return missing(`image ${instance.image} not found`);
  const ids = new Set([...state.files.values()].map(({ uuid }) => uuid));
  const lost = Object.values(instance.files ?? {}).find(({ uuid }) => !ids.has(uuid));
  if (lost !== undefined) return missing(`file ${lost.uuid} does not exist`);

  const outcome = state.run(instance, state.instances.length) ?? {};
  state.instances.push(instance);
  const operation = state.addOperation("instance", {
    metadata: {
      command: instance.command,
      image: instance.image,
      shell: instance.shell,
      ...(options.tellsLimits === false ? {} : { truncate_output_at: instance.truncate_output_at }),
    },
  });
  operation.request = instance;
  perform(state, operation, instance, image.uuid, outcome);
  const headers = { location: `/v1/operations/${operation.record.uuid}` };
  return Response.json({ uuid: operation.record.uuid, status: "PENDING" }, { status: 201, headers });
}

function faultOf(body: Record<string, unknown>): string | undefined {
  if (asText(body.image) === undefined) return "image is required";
  if (asText(body.command) === undefined) return "command is required";
  if (body.shell === true && body.args !== undefined) return "args need shell: false";
  if (asText(body.cwd)?.startsWith("/") === false) return "cwd must be absolute";
  for (const [path, file] of Object.entries(asRecord(body.files) ?? {})) {
    if (!path.startsWith("/")) return `file path ${path} must be absolute`;
    if (!/^[0-7]{3,4}$/.test(asText(asRecord(file)?.mode) ?? "0644")) return `invalid mode of ${path}`;
  }
  return undefined;
}

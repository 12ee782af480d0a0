import { requireSessionImage, resolveImageArgument } from "../../references/image-argument.ts";
import { sessionKey } from "../../references/session-argument.ts";
import { type Connection, connect } from "../../service/connection.ts";
import { type Call, invocationFor } from "../call.ts";

/** An image in a tool's input; by default it is the session's. */
interface GivenImage {
  image?: string | undefined;
  session?: string | undefined;
}

/** Connects to the service and calls `action` with the image's UUID. */
export async function withImage<Result>(
  { image, session }: GivenImage,
  call: Call,
  action: (image: string, connection: Connection) => Promise<Result>,
): Promise<Result> {
  const invocation = invocationFor({ session }, call);
  await using connection = await connect(invocation);
  const found =
    image === undefined
      ? requireSessionImage(connection.store, sessionKey(invocation))
      : await resolveImageArgument(connection, image);
  return await action(found, connection);
}

import { notedConfiguration, notedOrigin } from "../../builder/cache/noted-configuration.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import type { FoundImage } from "../../service/service.ts";
import type { Connection } from "../service/connection.ts";

/** An image's configuration and origin: from bough's own records, else from the service, else empty. */
export interface Description {
  config: ImageConfig;
  origin: ImageOrigin;
}

export async function findDescription(
  image: string,
  connection: Pick<Connection, "service" | "store">,
): Promise<Description> {
  const found = await connection.service.findImage(image);
  return descriptionOf(image, found === "unsupported" ? undefined : found, connection);
}

export function descriptionOf(
  image: string,
  found: FoundImage | undefined,
  { store }: Pick<Connection, "store">,
): Description {
  return {
    config: notedConfiguration(image, store) ?? found?.config ?? {},
    origin: notedOrigin(image, store) ?? found?.origin ?? {},
  };
}

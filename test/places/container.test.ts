import { keepPromises } from "./keep-promises.ts";

keepPromises("container");

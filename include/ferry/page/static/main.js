// The entry for Airflow: its React app imports this module and takes the global function. The page itself uses Preact.
import { mount } from "./page.js";

globalThis.AirflowPlugin = function FerryPage() {
  const { React } = globalThis;
  const place = React.useRef(null);
  React.useEffect(() => mount(place.current), []);
  return React.createElement("div", { ref: place, style: { height: "100%", overflow: "auto" } });
};
